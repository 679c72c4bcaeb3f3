"""Taking keys for one run: create what is absent, claim what waits, adopt what the run has already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import Connection, Engine

from domain.shared.work import Kind, WorkRequest
from resources.database.engine import reading, writing
from resources.database.statements import lock_name
from resources.ledger.model import Work
from resources.ledger.outcome import Outcome
from resources.ledger.rows import Change, KeyState, create, read_keys, write
from resources.ledger.schema import COMPLETED, DEFERRED, SKIPPED
from resources.ledger.transitions import claimed, first_generation
from resources.ledger.transitions import settled as settled_as
from resources.ledger.year_locks import YearLock, locks_of

YEAR_LOCKED = "year_locked"
"""The reason code of work that met a locked year."""


@dataclass(slots=True)
class Claims:
    """What became of the asked keys. `done` names those this very run finished in an earlier pass, `settled`
    those it gave up or put off then, or that were taken from it and called off. `locked` are of locked years:
    their work has ended, and is wished for again when the year is open."""

    held: dict[str, Work] = field(default_factory=dict)
    busy: dict[str, str] = field(default_factory=dict)
    done: dict[str, Work] = field(default_factory=dict)
    settled: dict[str, Work] = field(default_factory=dict)
    locked: dict[str, YearLock] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claimant:
    run_id: str
    now: datetime
    lease_until: datetime


def take(
    engine: Engine,
    kind: Kind,
    keys: Sequence[str],
    claimant: Claimant,
    fingerprints: Mapping[str, str],
) -> Claims:
    if not keys:
        return Claims()
    with reading(engine) as connection:
        births = _absent(_read(connection, kind, keys, claimant, lock=False), claimant)
    if not births:
        with writing(engine) as connection:
            locks = locks_of(connection, kind, keys)
            states = _read(connection, kind, keys, claimant, lock=True)
            if not _absent(states, claimant):
                return _claim(connection, kind, states, locks, claimant)
    # Only the transaction that may create rows waits for others that do.
    with writing(engine) as connection:
        locks = locks_of(connection, kind, keys)
        lock_name(connection, kind.name)
        states = _read(connection, kind, keys, claimant, lock=True)
        absent = _absent(states, claimant)
        rows = [_wished(kind, key, states[key].last_word, fingerprints, claimant.now) for key in absent]
        for row in create(connection, rows, claimant.now):
            states[row.key] = KeyState(waiting=row)
        return _claim(connection, kind, states, locks, claimant)


def _read(
    connection: Connection, kind: Kind, keys: Sequence[str], claimant: Claimant, *, lock: bool
) -> dict[str, KeyState]:
    return read_keys(connection, kind.name, keys, lock=lock, run_id=claimant.run_id)


def _absent(states: Mapping[str, KeyState], claimant: Claimant) -> list[str]:
    return [
        key
        for key, state in states.items()
        if state.waiting is None and state.running is None and state.had_by(claimant.run_id) is None
    ]


def _put_off_by(row: Work, claimant: Claimant) -> bool:
    """An earlier pass of this same run has deferred it: the wait is not over because the run goes on."""
    return row.status == DEFERRED and row.run_id == claimant.run_id and row.not_before > claimant.now


def _wished(kind: Kind, key: str, last: Work | None, fingerprints: Mapping[str, str], now: datetime) -> Work:
    """A row for a key nobody wished for: somebody runs it by hand.

    It carries the last fingerprint where none is given: if it fails, the plan's old wish stays refused.
    """
    fingerprint = fingerprints.get(key, last.fingerprint if last else "")
    params = last.params if last and last.fingerprint == fingerprint else {}
    item = WorkRequest(
        kind=kind.name, key=key, fingerprint=fingerprint, params=params, once=last.once if last else False
    )
    return first_generation(item, kind, now)


def _claim(
    connection: Connection,
    kind: Kind,
    states: Mapping[str, KeyState],
    locks: Mapping[str, YearLock],
    claimant: Claimant,
) -> Claims:
    claims = Claims()
    changes: list[Change] = []
    for key, state in states.items():
        row = state.running or state.waiting
        if row is None:
            if had := state.had_by(claimant.run_id):
                (claims.done if had.status in (COMPLETED, SKIPPED) else claims.settled)[key] = had
            continue
        if state.running is None and _put_off_by(row, claimant):
            claims.settled[key] = row
            continue
        if state.running is not None and state.running.run_id != claimant.run_id:
            claims.busy[key] = state.running.run_id or "unknown"
            continue
        if state.running is None and key in locks:
            claims.locked[key] = locks[key]
            changes.append(Change(row, _left(row, kind, claimant), "skipped"))
            continue
        after = claimed(row, claimant.run_id, now=claimant.now, lease_until=claimant.lease_until)
        claims.held[key] = after
        changes.append(Change(row, after, "adopted" if state.running is not None else "claimed"))
    write(connection, changes, claimant.now)
    return claims


def _left(row: Work, kind: Kind, claimant: Claimant) -> Work:
    """Nothing was wrong with it, and nobody began it. Waiting on, it would be sent again and again."""
    return settled_as(replace(row, run_id=claimant.run_id), Outcome("skip", YEAR_LOCKED), kind, claimant.now)

"""Taking keys for one run: create what is absent, claim what waits, adopt what the run has already."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import Connection, Engine

from domain.shared.error import PerennialError
from domain.shared.work import Kind, WorkRequest
from resources.database.engine import reading, writing
from resources.database.statements import lock_name
from resources.ledger.model import Work
from resources.ledger.outcome import Outcome
from resources.ledger.rows import Change, KeyState, create, read_keys, write
from resources.ledger.schema import COMPLETED, DEFERRED, SKIPPED
from resources.ledger.transitions import claimed, first_generation
from resources.ledger.transitions import settled as settled_as


@dataclass(slots=True)
class Claims:
    """What became of the asked keys. `done` names those this very run finished in an earlier pass, `settled`
    those it gave up or put off then, or that were taken from it and called off. `refused` are those that the
    kind's gate keeps anybody from: their work has ended, and is requested again when it may be done."""

    held: dict[str, Work] = field(default_factory=dict)
    busy: dict[str, str] = field(default_factory=dict)
    done: dict[str, Work] = field(default_factory=dict)
    settled: dict[str, Work] = field(default_factory=dict)
    refused: dict[str, PerennialError] = field(default_factory=dict)


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
            refused = refusals(connection, kind, keys)
            states = _read(connection, kind, keys, claimant, lock=True)
            if not _absent(states, claimant):
                return _claim(connection, kind, states, refused, claimant)
    # Only the transaction that may create rows waits for others that do.
    with writing(engine) as connection:
        refused = refusals(connection, kind, keys)
        lock_name(connection, kind.name)
        states = _read(connection, kind, keys, claimant, lock=True)
        absent = _absent(states, claimant)
        rows = [_wished(kind, key, states[key].last_word, fingerprints, claimant.now) for key in absent]
        for row in create(connection, rows, claimant.now):
            states[row.key] = KeyState(waiting=row)
        return _claim(connection, kind, states, refused, claimant)


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
    refused: Mapping[str, PerennialError],
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
        if state.running is None and key in refused:
            claims.refused[key] = refused[key]
            changes.append(Change(row, skipped_as_refused(row, kind, refused[key], claimant), "skipped"))
            continue
        after = claimed(row, claimant.run_id, now=claimant.now, lease_until=claimant.lease_until)
        claims.held[key] = after
        changes.append(Change(row, after, "adopted" if state.running is not None else "claimed"))
    write(connection, changes, claimant.now)
    return claims


def refusals(connection: Connection, kind: Kind, keys: Collection[str]) -> Mapping[str, PerennialError]:
    """Which of the keys the kind's gate refuses."""
    lock_gate(connection, kind)
    return {} if kind.gate is None else kind.gate(connection, keys)


def lock_gate(connection: Connection, kind: Kind) -> None:
    """Let claims of a gated kind go one after another: a gate waits for locks beside those of rows."""
    if kind.gate is not None:
        lock_name(connection, f"gate of {kind.name}")


def skipped_as_refused(row: Work, kind: Kind, why: PerennialError, claimant: Claimant) -> Work:
    """Nothing was wrong with it, and nobody began it. Waiting on, it would be dispatched again and again."""
    outcome = Outcome("skip", why.reason_code)
    return settled_as(replace(row, run_id=claimant.run_id), outcome, kind, claimant.now)

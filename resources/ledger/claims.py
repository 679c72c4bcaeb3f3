"""Claiming named keys for a run: create what is absent, claim what waits, adopt what it has."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import Connection

from domain.shared.error import PerennialError
from domain.shared.work import COMPLETED, DEFERRED, RUNNING, SKIPPED, Kind, Work, WorkRequest
from resources.database.engine import writing
from resources.database.statements import lock_name
from resources.ledger.context import LedgerContext
from resources.ledger.history import KeyState
from resources.ledger.model import WORKER
from resources.ledger.outcome import Outcome
from resources.ledger.rows import Change, create, read_keys, write
from resources.ledger.transitions import claimed, first_generation, request_of, settled


@dataclass(slots=True)
class Claims:
    """What became of the keys that a run wanted, by key.

    held     ours to do
    busy     another live run has it (its id)
    done     this very run finished it in an earlier pass
    settled  this run gave it up or deferred it in an earlier pass, or it was cancelled meanwhile
    refused  the kind's gate keeps everybody from it; its row is skipped, and requested again in its time
    """

    held: dict[str, Work] = field(default_factory=dict)
    busy: dict[str, str] = field(default_factory=dict)
    done: dict[str, Work] = field(default_factory=dict)
    settled: dict[str, Work] = field(default_factory=dict)
    refused: dict[str, PerennialError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who claims, and until when the lease lasts. `attempt` False: the claims count as no attempt."""

    run_id: str
    now: datetime
    lease_until: datetime
    attempt: bool = True

    @property
    def earlier_run(self) -> str | None:
        """The run that an earlier pass may have belonged to; a worker, which goes from row to row under one
        name, has no passes."""
        return None if self.run_id.startswith(WORKER) else self.run_id

    def claims(self, row: Work, event: str, *, attempt: bool) -> Change:
        after = claimed(row, self.run_id, now=self.now, lease_until=self.lease_until, attempt=attempt)
        return Change(row, after, event)


def claim_keys(
    ledger: LedgerContext,
    kind: Kind,
    keys: Sequence[str],
    claimant: Claimant,
    fingerprints: Mapping[str, str],
) -> Claims:
    if not keys:
        return Claims()
    with writing(ledger.engine) as connection:
        refused = refusals(connection, kind, keys)
        lock_name(connection, kind.name)
        states = read_keys(connection, kind.name, keys, lock=True, run_id=claimant.earlier_run)
        absent = [
            _by_hand(kind, key, state.last, fingerprints, claimant.now)
            for key, state in states.items()
            if not (state.waiting or state.running or state.finished_by(claimant.earlier_run))
        ]
        for row in create(connection, absent, claimant.now):
            states[row.key] = KeyState(waiting=row)
        return _claim(connection, kind, states, refused, claimant)


def _by_hand(kind: Kind, key: str, last: Work | None, fingerprints: Mapping[str, str], now: datetime) -> Work:
    """A row for a key that no plan requested: a person runs it.

    It carries the last fingerprint where none is given: if it fails, the plan's old request stays refused.
    """
    request = WorkRequest(kind.name, key, "") if last is None else request_of(last)
    if fingerprints.get(key, request.fingerprint) != request.fingerprint:
        request = replace(request, fingerprint=fingerprints[key], params={})
    return first_generation(request, kind, now)


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
        if state.running is not None and state.running.run_id != claimant.earlier_run:
            claims.busy[key] = state.running.run_id or "unknown"
        elif earlier := _earlier_pass(state, claimant):
            (claims.done if earlier.status in (COMPLETED, SKIPPED) else claims.settled)[key] = earlier
        elif state.running is not None:
            changes.append(claimant.claims(state.running, "adopted", attempt=False))
        elif state.waiting is not None and key in refused:
            claims.refused[key] = refused[key]
            changes.append(skip_refused(state.waiting, kind, refused[key], claimant))
        elif state.waiting is not None:
            # A run that had the row before continues its attempt.
            attempt = state.waiting.run_id != claimant.earlier_run or claimant.earlier_run is None
            changes.append(claimant.claims(state.waiting, "claimed", attempt=attempt))
    write(connection, changes, claimant.now)
    claims.held = {change.after.key: change.after for change in changes if change.after.status == RUNNING}
    return claims


def _earlier_pass(state: KeyState, claimant: Claimant) -> Work | None:
    """How an earlier pass of this same run ended the key, if it did: a deferral outlasts the run's passes."""
    row = state.waiting
    if state.running is not None:
        return None
    if row is None:
        return state.finished_by(claimant.earlier_run)
    deferred = row.status == DEFERRED and row.run_id == claimant.earlier_run and row.not_before > claimant.now
    return row if deferred else None


def skip_refused(row: Work, kind: Kind, why: PerennialError, claimant: Claimant) -> Change:
    """Nothing was wrong with the row, and nobody began it. Waiting on, it would be dispatched for ever."""
    outcome = Outcome("skip", why.reason_code)
    after = settled(replace(row, run_id=claimant.run_id), outcome, kind, claimant.now)
    return Change(row, after, "skipped")


def refusals(connection: Connection, kind: Kind, keys: Collection[str]) -> Mapping[str, PerennialError]:
    """Which of the keys the kind's gate refuses."""
    lock_gate(connection, kind)
    return {} if kind.gate is None else kind.gate(connection, keys)


def lock_gate(connection: Connection, kind: Kind) -> None:
    """Let claims of a gated kind go one after another: a gate waits for other locks than those of rows."""
    if kind.gate is not None:
        lock_name(connection, f"gate of {kind.name}")

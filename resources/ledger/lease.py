"""`Lease`: the work items that a run has, from the claim to the answer for each key.

Opening a lease claims its keys, a thread renews it, leaving it answers for every key. Answers are collected
and written together, with each heartbeat and at the end: 250 keys cost a few statements.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import Self

from sqlalchemy.exc import SQLAlchemyError

from domain.shared.error import PerennialError
from domain.shared.work import Kind, Work
from resources.database.engine import writing
from resources.ledger.claim_due import claim_due
from resources.ledger.claims import Claimant, Claims, claim_keys
from resources.ledger.context import LedgerContext
from resources.ledger.model import LeasedElsewhere, LeaseLost
from resources.ledger.outcome import Outcome, outcome_of
from resources.ledger.rows import renew
from resources.ledger.settle import Answers, settle
from resources.ledger.transitions import LEASE

HEARTBEAT = timedelta(seconds=15)
NEXT_PASS = LEASE
"""How much longer than its wait the next pass of a run may take to come, before others may claim its rows."""

log = logging.getLogger(__name__)


class LeaseOperations(LedgerContext):
    def lease(
        self,
        kind: str,
        keys: Sequence[str],
        run_id: str,
        *,
        retry_in: timedelta | None = None,
        heartbeat: bool = True,
        fingerprints: Mapping[str, str] | None = None,
    ) -> Lease:
        """Lease named keys to a run, to be used in a `with`.

        `retry_in`: after a transient error another pass of this run follows, after so long.
        `fingerprints` are given to rows created here, for keys that nobody had requested.
        """
        found, names = self.kind_named(kind), tuple(dict.fromkeys(keys))

        def claim(claimant: Claimant) -> Claims:
            return claim_keys(self, found, names, claimant, fingerprints or {})

        return Lease(self, found, run_id, claim, retry_in, heartbeat)

    def lease_due(
        self,
        kind: str,
        holder: str,
        limit: int,
        *,
        tenants: Collection[str] | None = None,
        keys: Collection[str] | None = None,
        heartbeat: bool = True,
    ) -> Lease:
        """Lease what is due of a pulled kind, at most `limit` keys; `lease.more(n)` leases further ones.

        With `tenants`, only what is due of these; with `keys`, at first only these.
        """
        found = self.kind_named(kind)

        def claim(claimant: Claimant) -> Claims:
            rows = claim_due(self, found, claimant, limit, tenants=tenants, keys=keys)
            return Claims(held={row.key: row for row in rows})

        return Lease(self, found, holder, claim, None, heartbeat, tenants)


@dataclass(slots=True)
class _Leased:
    """One row, and how far its answer has come."""

    row: Work
    outcome: Outcome | None = None
    written: bool = False
    lost: bool = False

    @property
    def open(self) -> bool:
        return not self.written and not self.lost


@dataclass(eq=False, repr=False)
class Lease(Answers[str]):
    """A context manager. `keys` are ours to do; the others are in `busy`, `done`, `settled` and `refused`,
    as `Claims` explains them. To answer for a `done` key again is allowed and does nothing."""

    _ledger: LedgerContext
    _kind: Kind
    _run_id: str
    _claim: Callable[[Claimant], Claims]
    _retry_in: timedelta | None
    _heartbeat: bool
    _tenants: Collection[str] | None = None
    busy: Mapping[str, str] = field(default_factory=dict, init=False)
    done: tuple[str, ...] = field(default=(), init=False)
    settled: Mapping[str, Work] = field(default_factory=dict, init=False)
    refused: Mapping[str, PerennialError] = field(default_factory=dict, init=False)
    _leased: dict[str, _Leased] = field(default_factory=dict, init=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False)
    """The heartbeat and the body both write answers."""
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._leased)

    @property
    def work(self) -> Mapping[str, Work]:
        """The rows behind `keys`, as they were claimed: fingerprint, params, attempts."""
        return {key: one.row for key, one in self._leased.items()}

    def more(self, limit: int) -> tuple[str, ...]:
        """Lease up to `limit` further due keys; returns them."""
        self._flush()
        rows = claim_due(self._ledger, self._kind, self._claimant(), limit, tenants=self._tenants)
        with self._lock:
            self._leased |= {row.key: _Leased(row) for row in rows}
        return tuple(row.key for row in rows)

    def check(self) -> None:
        """Raise LeaseLost if anything of ours is not ours any more; otherwise the lease is whole again.

        Called under a table's lock just before a commit, so it proves the fence by renewing with it.
        """
        self._beat()
        self._raise_if_lost()

    def answer(self, work: str, outcome: Outcome) -> None:
        """Note the answer for a key; it is written with the next heartbeat, or at the end."""
        if work in self.done:
            return
        with self._lock:
            if work not in self._leased:
                raise KeyError(f"{work} is not leased to {self._run_id}")
            if (given := self._leased[work].outcome) is not None:
                raise ValueError(f"{work} was answered for already ({given.verb})")
            self._leased[work].outcome = outcome

    def __enter__(self) -> Self:
        claims = self._claim(self._claimant())
        self._leased = {key: _Leased(row) for key, row in claims.held.items()}
        self.busy, self.done = claims.busy, tuple(claims.done)
        self.settled, self.refused = claims.settled, claims.refused
        if self._heartbeat and self._leased:
            name = f"lease of {self._kind.name}"
            self._thread = threading.Thread(target=self._keep_alive, name=name, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if error is None:
            self._answer_rest(Outcome("complete"))
            self._flush()
            self._raise_if_lost()
            if self.busy:
                holders = _shown(sorted(set(self.busy.values())))
                raise LeasedElsewhere(f"{self._kind.name} {_shown(self.busy)} is leased to {holders}")
            return
        try:
            self._answer_rest(self._outcome_of(error))
            self._flush()
        except (PerennialError, SQLAlchemyError) as second:
            # The body's own error is the one to be seen; the sweep recovers what was not written.
            log.warning("the end of %s was not written to the ledger: %s", self._kind.name, second)
            error.add_note(f"the end of the work was not written to the ledger: {second}")
        if lost := self._lost():
            error.add_note(f"no longer leased and left alone: {_shown(lost)}")

    def _claimant(self) -> Claimant:
        ledger = self._ledger
        return Claimant(self._run_id, ledger.clock(), ledger.machine_clock() + LEASE)

    def _outcome_of(self, error: BaseException) -> Outcome:
        outcome = outcome_of(error)
        transient = outcome.cause is not None and outcome.cause.kind == "transient"
        if self._retry_in is None or not transient or not getattr(error, "retry_in_run", True):
            return outcome
        again = self._ledger.clock() + self._retry_in + NEXT_PASS
        return Outcome("repeat", outcome.reason_code, outcome.cause, again)

    def _answer_rest(self, outcome: Outcome) -> None:
        with self._lock:
            for one in self._leased.values():
                one.outcome = one.outcome or outcome

    def _flush(self) -> None:
        """Write the answers given since the last time."""
        with self._lock:
            new = {one.row.id: one for one in self._leased.values() if one.outcome is not None and one.open}
            answers = [(n, one.row.fence, one.outcome) for n, one in new.items() if one.outcome]
            _, stale = settle(self._ledger, answers)
            for number, one in new.items():
                one.written, one.lost = True, number in stale

    def _beat(self) -> None:
        with self._lock:
            self._flush()
            unfinished = [one for one in self._leased.values() if one.open]
            if not unfinished:
                return
            with writing(self._ledger.engine) as connection:
                fences = {one.row.id: one.row.fence for one in unfinished}
                renewed = renew(connection, fences, self._ledger.machine_clock() + LEASE)
            for one in unfinished:
                one.lost = one.row.id not in renewed

    def _keep_alive(self) -> None:
        while not self._stop.wait(HEARTBEAT.total_seconds()):
            try:
                self._beat()
            except Exception:
                # Whatever it was, it is not fatal yet: the next beat may get through, and `check` guards
                # every commit.
                log.warning("a heartbeat of %s failed", self._run_id, exc_info=True)

    def _lost(self) -> list[str]:
        return sorted(key for key, one in self._leased.items() if one.lost)

    def _raise_if_lost(self) -> None:
        if lost := self._lost():
            raise LeaseLost(
                f"{self._run_id} lost its lease on {self._kind.name} {_shown(lost)}: "
                "swept, cancelled or claimed by another run"
            )


def _shown(names: Collection[str]) -> str:
    first, more = list(names)[:5], list(names)[5:]
    return ", ".join(first) + (f" and {len(more)} more" if more else "")

"""`Hold`: what an asset body works with while it has work in its hands.

Opening it takes the keys, a thread renews the lease, leaving it answers for every key. Answers are
collected and written together, with each heartbeat and at the end: 250 keys cost a few statements.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from domain.shared.clock import Clock
from domain.shared.error import PerennialError
from domain.shared.work import Kind
from resources.database.engine import writing
from resources.ledger import pauses
from resources.ledger.claims import Claimant, Claims, take
from resources.ledger.model import HeldElsewhere, LeaseLost, Work
from resources.ledger.outcome import Outcome, cause_of, outcome_of
from resources.ledger.rows import Change, lock_ids, renew, write
from resources.ledger.schema import RUNNING
from resources.ledger.settle import Answer, settle
from resources.ledger.transitions import LEASE, between_passes

HEARTBEAT = timedelta(seconds=15)
SHOWN = 5
"""Keys an error message names."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """Who asks for what. `final` False: a transient failure comes back in `retry_in`, in the same run."""

    kind: Kind
    keys: tuple[str, ...]
    run_id: str
    final: bool = True
    retry_in: timedelta = timedelta(0)
    heartbeat: bool = True
    fingerprints: Mapping[str, str] = field(default_factory=dict)


class Lease:
    """A context manager. `keys` are ours to do, `busy` those another live run does, `done` those that an
    earlier pass of this same run finished; to answer for a `done` key again is allowed and does nothing."""

    def __init__(self, engine: Engine, request: LeaseRequest, *, clock: Clock, machine_clock: Clock) -> None:
        self._engine = engine
        self._request = request
        self._clock = clock
        self._machine_clock = machine_clock
        self._claims = Claims()
        self._answers: dict[str, Outcome] = {}
        self._written: set[str] = set()
        self._lost: set[str] = set()
        # The heartbeat and the body both write answers.
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._lease = LEASE
        self._pause: pauses.Pause | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._claims.held)

    @property
    def work(self) -> Mapping[str, Work]:
        """The rows behind `keys`, as they were claimed: fingerprint, params, attempts."""
        return self._claims.held

    @property
    def busy(self) -> dict[str, str]:
        return dict(self._claims.busy)

    @property
    def settled(self) -> Mapping[str, Work]:
        """What an earlier pass of this same run gave up or put off: not ours any more, and not done."""
        return dict(self._claims.settled)

    @property
    def refused(self) -> Mapping[str, PerennialError]:
        """Keys that the kind's gate refuses, with its reasons: not ours, and not to be done."""
        return dict(self._claims.refused)

    @property
    def done(self) -> tuple[str, ...]:
        return tuple(self._claims.done)

    def check(self) -> None:
        """Raise LeaseLost if anything of ours is not ours any more; otherwise the lease is whole again.

        Called under a table's lock just before a commit, so it proves the fence by renewing with it.
        """
        self._beat()
        self._raise_if_lost()

    def complete(self, key: str, reason_code: str = "") -> None:
        self._answer(key, Outcome("complete", reason_code))

    def skip(self, key: str, reason_code: str) -> None:
        self._answer(key, Outcome("skip", reason_code))

    def defer(
        self,
        key: str,
        error: BaseException | str,
        *,
        not_before: datetime | None = None,
        reason_code: str | None = None,
    ) -> None:
        """Try again later: at `not_before` if the caller knows, else by the kind's backoff."""
        cause = cause_of(error)
        self._answer(key, Outcome("defer", reason_code or cause.reason_code, cause, not_before))

    def fail(self, key: str, error: BaseException | str, *, reason_code: str | None = None) -> None:
        cause = cause_of(error, otherwise="permanent")
        self._answer(key, Outcome("fail", reason_code or cause.reason_code, cause))

    def __enter__(self) -> Self:
        request = self._request
        claimant = Claimant(request.run_id, self._clock(), self._machine_clock() + LEASE)
        self._claims = take(self._engine, request.kind, request.keys, claimant, request.fingerprints)
        pauses.end_of_rows(self._engine, [row.id for row in self._claims.held.values()])
        if request.heartbeat and self._claims.held:
            self._start_heartbeat()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop_heartbeat()
        if error is None:
            self._answer_rest(Outcome("complete"))
            self._flush()
            self._raise_if_lost()
            self._raise_if_busy()
            return
        try:
            self._end_with(error)
        except (PerennialError, SQLAlchemyError) as second:
            # The body's own error is the one to be seen; the sweep recovers what was not written.
            # One line: whoever has no room on the disk is not helped by a stack.
            log.warning("the ledger could not be told how %s ended: %s", self._request.kind.name, second)
            error.add_note(f"the ledger could not be told: {second}")

    def _end_with(self, error: BaseException) -> None:
        outcome = outcome_of(error)
        comes_back = (
            not self._request.final
            and outcome.cause is not None
            and outcome.cause.kind == "transient"
            and outcome.cause.retry_in_run
        )
        if comes_back:
            self._flush()
            self._stay(outcome)
        else:
            self._answer_rest(outcome)
            self._flush()
        if self._lost:
            error.add_note(f"no longer ours and left alone: {_named(sorted(self._lost))}")

    def _answer(self, key: str, outcome: Outcome) -> None:
        if key in self._claims.done:
            return
        with self._lock:
            if key not in self._claims.held:
                raise KeyError(f"{key} is not held by {self._request.run_id}")
            if key in self._answers:
                raise ValueError(f"{key} was answered for already ({self._answers[key].verb})")
            self._answers[key] = outcome

    def _answer_rest(self, outcome: Outcome) -> None:
        with self._lock:
            for key in self._claims.held:
                self._answers.setdefault(key, outcome)

    def _flush(self) -> None:
        """Write the answers given since the last time."""
        with self._lock:
            new = [key for key in self._answers if key not in self._written and key not in self._lost]
            rows = {self._claims.held[key].id: key for key in new}
            answers = [Answer(i, self._claims.held[key].fence, self._answers[key]) for i, key in rows.items()]
            kinds = {self._request.kind.name: self._request.kind}
            _, stale = settle(self._engine, kinds, answers, self._clock())
            self._written |= set(new)
            self._lost |= {rows[number] for number in stale}

    def _open_rows(self) -> dict[str, Work]:
        return {
            key: row
            for key, row in self._claims.held.items()
            if key not in self._written and key not in self._lost
        }

    def _beat(self) -> None:
        with self._lock:
            self._flush()
            rows = self._open_rows()
            if not rows:
                return
            with writing(self._engine) as connection:
                fences = {row.id: row.fence for row in rows.values()}
                renewed = renew(connection, fences, self._machine_clock() + self._lease)
            self._lost |= {key for key, row in rows.items() if row.id not in renewed}

    def _start_heartbeat(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(
            target=self._keep_alive, name=f"lease of {self._request.kind.name}", daemon=True
        )
        self._thread.start()

    def _stop_heartbeat(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _keep_alive(self) -> None:
        while self._open_rows() and not self._stop.wait(HEARTBEAT.total_seconds()):
            try:
                self._beat()
            except Exception:
                # Whatever it was, it is not fatal yet: the next beat may get through, and `check` guards
                # every commit.
                log.warning("a heartbeat of %s failed", self._request.run_id, exc_info=True)

    def _stay(self, outcome: Outcome) -> None:
        """Keep what is unanswered while the run waits for its next pass."""
        rows = self._open_rows()
        now = self._clock()
        self._lease = self._request.retry_in + LEASE
        lease_until = self._machine_clock() + self._lease
        with writing(self._engine) as connection:
            changes: list[Change] = []
            current = {row.id: row for row in lock_ids(connection, [row.id for row in rows.values()])}
            for key, row in rows.items():
                found = current.get(row.id)
                if found is None or found.fence != row.fence or found.status != RUNNING:
                    self._lost.add(key)
                    continue
                after = between_passes(found, outcome, now=now, lease_until=lease_until)
                changes.append(Change(found, after, "pass_failed"))
            write(connection, changes, now)
        ours = frozenset(row.id for row in self._open_rows().values())
        if self._request.heartbeat and ours:
            self._start_heartbeat()
            self._pause = pauses.begin(
                pauses.Pause(self._engine, self._request.run_id, ours, self._stop_heartbeat)
            )

    def _raise_if_lost(self) -> None:
        if self._lost:
            raise LeaseLost(
                f"{self._request.run_id} lost its hold on {self._request.kind.name} "
                f"{_named(sorted(self._lost))}: swept, cancelled or claimed by another run"
            )

    def _raise_if_busy(self) -> None:
        if self._claims.busy:
            keys = list(self._claims.busy)
            holders = sorted(set(self._claims.busy.values()))
            raise HeldElsewhere(
                f"{self._request.kind.name} {_named(keys)} is being done by {_named(holders)}",
                remedy="wait for that run; if it is dead, the sweep frees the work when its lease ends",
            )


def _named(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")

"""`Ledger`: the whole interface of the work ledger over one database, SQLite or Postgres.

Only wiring: what to do is decided in `transitions.py`, and each operation has its module. Two clocks
are injected: the business clock stamps rows and rules `not_before`, the machine clock rules leases.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import Engine

from domain.shared import clock as clocks
from domain.shared.clock import Clock
from domain.shared.work import Kind, WorkRequest
from resources.database.engine import open_engine, reading
from resources.database.errors import driver_errors
from resources.ledger import dispatch as dispatching
from resources.ledger import enqueue as requests
from resources.ledger import pauses, person, queries, sweep
from resources.ledger.claims import Claimant
from resources.ledger.freshness import Freshness
from resources.ledger.lease import Lease, LeaseRequest
from resources.ledger.model import Dispatch, EnqueueReport, Event, HeldElsewhere, LeaseLost, Swept, Work
from resources.ledger.outcome import Outcome, cause_of
from resources.ledger.pipelines import Pipelines
from resources.ledger.provenance import Provenance
from resources.ledger.settle import Answer, settle
from resources.ledger.stamp import check_source, stamp_source, stamped_source
from resources.ledger.transitions import LEASE, LONGEST_LEASE

__all__ = [
    "Dispatch",
    "EnqueueReport",
    "Event",
    "HeldElsewhere",
    "Lease",
    "LeaseLost",
    "Ledger",
    "Swept",
    "Work",
]


def _alone(row: Work) -> str:
    return str(row.id)


def _any(_: Work) -> bool:
    return True


def _check_lease(lease: timedelta) -> None:
    if lease > LONGEST_LEASE:
        raise ValueError(f"a lease of {lease} is longer than {LONGEST_LEASE}: nobody would believe it")


@dataclass(frozen=True)
class Ledger:
    engine: Engine
    kinds: Mapping[str, Kind]
    clock: Clock
    machine_clock: Clock = clocks.machine_clock

    @classmethod
    def open(
        cls,
        url: str,
        *,
        kinds: Iterable[Kind],
        clock: Clock,
        machine_clock: Clock = clocks.machine_clock,
    ) -> Ledger:
        """A ledger that has not connected yet. The first use looks whether the schema fits."""
        return cls(open_engine(url), {kind.name: kind for kind in kinds}, clock, machine_clock)

    def with_kinds(self, kinds: Iterable[Kind]) -> Ledger:
        """The same ledger with these kinds of work, in place of its own of the same names."""
        return replace(self, kinds={**self.kinds, **{kind.name: kind for kind in kinds}})

    def migrate(self) -> None:
        """Bring the schema to this program's. Several processes may do so at once."""
        from resources.database.migrate import migrate

        migrate(self.engine)

    def reach(self) -> None:
        """Connect, whatever the schema."""
        with driver_errors(self.engine), self.engine.connect():
            pass

    def close(self) -> None:
        pauses.end_of_ledger(self.engine)
        self.engine.dispose()

    # Wishes and their dispatch

    def enqueue(self, items: Sequence[WorkRequest]) -> EnqueueReport:
        """Wish for work. Idempotent: the same wishes again write nothing."""
        return requests.enqueue(self.engine, self.kinds, items, self.clock())

    def dispatch(
        self,
        kind: str,
        *,
        limit: int,
        group: Callable[[Work], str] = _alone,
        order: dispatching.Order = "oldest",
        busy: Collection[str] = (),
        only: Callable[[Work], bool] = _any,
    ) -> list[Dispatch]:
        """The due rows to start runs for, at most `limit` groups; rows of one group travel together.

        Tenants take turns; then priority; then age, or with `order="newest"` the group's name,
        descending. `busy` names dispatches whose run is not finished: their rows are left out, and those
        that `only` refuses.
        """
        return dispatching.dispatch(
            self.engine, kind, limit=limit, group=group, order=order, busy=busy, now=self.clock(), only=only
        )

    def sent(self, dispatch_id: str) -> list[Work]:
        """The rows that went out under this id and have not been sent again since."""
        return queries.sent(self.engine, dispatch_id)

    def claim(self, kind: str, *, holder: str, limit: int, lease: timedelta = LEASE) -> list[Work]:
        """Take due rows for a worker process; it answers by id and fence.

        Tenants share alike; what one has not enough rows for goes to the others.
        """
        _check_lease(lease)
        claimant = Claimant(holder, self.clock(), self.machine_clock() + lease)
        return dispatching.claim(self.engine, requests.kind_named(self.kinds, kind), claimant, limit)

    # Holding and answering

    def lease(
        self,
        kind: str,
        keys: Sequence[str],
        run_id: str,
        *,
        final: bool = True,
        retry_in: timedelta = timedelta(0),
        heartbeat: bool = True,
        fingerprints: Mapping[str, str] | None = None,
    ) -> Lease:
        """The keys in the hands of a run, to be used in a `with`: see `Hold`.

        `fingerprints` are given to rows created here, for keys nobody had wished for.
        """
        _check_lease(retry_in + LEASE)
        request = LeaseRequest(
            kind=requests.kind_named(self.kinds, kind),
            keys=tuple(dict.fromkeys(keys)),
            run_id=run_id,
            final=final,
            retry_in=retry_in,
            heartbeat=heartbeat,
            fingerprints=fingerprints or {},
        )
        return Lease(self.engine, request, clock=self.clock, machine_clock=self.machine_clock)

    def complete(self, work_id: int, fence: int, reason_code: str = "") -> Work:
        return self._answer(work_id, fence, Outcome("complete", reason_code))

    def skip(self, work_id: int, fence: int, reason_code: str) -> Work:
        return self._answer(work_id, fence, Outcome("skip", reason_code))

    def defer(
        self,
        work_id: int,
        fence: int,
        error: BaseException | str,
        *,
        not_before: datetime | None = None,
        reason_code: str | None = None,
    ) -> Work:
        cause = cause_of(error)
        outcome = Outcome("defer", reason_code or cause.reason_code, cause, not_before)
        return self._answer(work_id, fence, outcome)

    def fail(
        self, work_id: int, fence: int, error: BaseException | str, *, reason_code: str | None = None
    ) -> Work:
        cause = cause_of(error, otherwise="permanent")
        return self._answer(work_id, fence, Outcome("fail", reason_code or cause.reason_code, cause))

    def release(self, work_id: int, fence: int, reason_code: str = "released") -> Work:
        """Give the row back; the attempt does not count."""
        return self._answer(work_id, fence, Outcome("release", reason_code))

    def _answer(self, work_id: int, fence: int, outcome: Outcome) -> Work:
        rows, stale = settle(self.engine, self.kinds, [Answer(work_id, fence, outcome)], self.clock())
        if stale:
            raise LeaseLost(f"work {work_id} is not held under fence {fence} any more; nothing was changed")
        return next(row for row in rows if row.id == work_id)

    # People and the sweep

    def retry(self, work_id: int) -> Work:
        """A waiting row becomes due now; a finished one is born again under a new id."""
        return person.retry(self.engine, self.kinds, work_id, self.clock())

    def cancel(self, work_id: int, *, reason_code: str = "cancelled") -> Work:
        return person.cancel(self.engine, work_id, self.clock(), reason_code=reason_code)

    def withdraw(self, seen: Sequence[Work], *, reason_code: str) -> list[Work]:
        """Call off waiting rows, each only if it is still as it was seen: never what began to run since."""
        return person.withdraw(self.engine, seen, self.clock(), reason_code=reason_code)

    def sweep(self, *, finished_runs: Collection[str], now: datetime | None = None) -> list[Swept]:
        """Take rows from dead holders. `finished_runs` are those Dagster calls finished or does not know;
        `now` stands in for the machine clock."""
        return sweep.sweep(
            self.engine,
            self.kinds,
            finished_runs=finished_runs,
            machine_now=now or self.machine_clock(),
            now=self.clock(),
        )

    # Looking

    def running(self) -> list[Work]:
        return queries.running(self.engine)

    def get(self, work_id: int) -> Work | None:
        with reading(self.engine) as connection:
            return queries.get(connection, work_id)

    def find(
        self,
        kind: str | None = None,
        key_prefix: str | None = None,
        status: str | Collection[str] | None = None,
        limit: int | None = 100,
    ) -> list[Work]:
        """Rows, newest first."""
        return queries.find(self.engine, kind=kind, key_prefix=key_prefix, status=status, limit=limit)

    def asked_for(self, ids: Collection[int]) -> frozenset[int]:
        """Of these rows those that a person asked for, whatever has become of them since."""
        return queries.asked_for(self.engine, ids)

    def events(self, work_id: int) -> list[Event]:
        return queries.events(self.engine, work_id)

    def counts(self) -> dict[str, dict[str, int]]:
        return queries.counts(self.engine)

    def purge(self, older_than: datetime) -> int:
        return queries.purge(self.engine, older_than)

    # Neighbours in the same database

    @property
    def provenance(self) -> Provenance:
        return Provenance(self.engine, self.clock)

    @property
    def pipelines(self) -> Pipelines:
        return Pipelines(self.engine)

    @property
    def freshness(self) -> Freshness:
        return Freshness(self.engine, self.clock)

    def stamp_source(self, source: str) -> None:
        stamp_source(self.engine, source)

    def check_source(self, source: str) -> None:
        """Raises if this ledger belongs to another source."""
        check_source(self.engine, source)

    def stamped_source(self) -> str | None:
        return stamped_source(self.engine)

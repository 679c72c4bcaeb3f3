"""The rules of the ledger once more, as simply as possible: one thing at a time, no database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any

from domain.shared.work import Work, WorkRequest
from tests.integration.conftest import FINITE, START, SettableClock

WAITING = {"queued", "deferred"}
TRIED = {"completed", "failed", "skipped"}
FINISHED = {*TRIED, "cancelled", "superseded"}
LEASE = timedelta(seconds=60)
HOUR = timedelta(hours=1)
RETRY_IN = timedelta(seconds=10)
DEATHS = 10
WORKERS = ("worker:1", "worker:2")


@dataclass(frozen=True)
class Ending:
    """How an attempt ends, and the error it ends with."""

    verb: str
    error: Exception | None = None
    after: timedelta | None = None

    @property
    def unclassified(self) -> bool:
        return isinstance(self.error, ZeroDivisionError)

    @property
    def text(self) -> str | None:
        return "ZeroDivisionError: oops" if self.unclassified else self.error and str(self.error)


@dataclass
class Row:
    """What is expected of one row of `work`, and the history that its events must be."""

    id: int
    kind: str
    key: str
    fingerprint: str
    once: bool
    not_before: datetime
    recurrence: int = 0
    status: str = "queued"
    error: str | None = None
    attempts: int = 0
    crash_count: int = 0
    deaths: int = 0
    not_before_fixed: bool = False
    dispatches: int = 0
    dispatch_id: str | None = None
    run_id: str | None = None
    lease_until: datetime | None = None
    fence: int = 0
    finished_at: datetime | None = None
    updated_at: datetime = START
    history: list[tuple[str, str, int]] = field(default_factory=list)

    @property
    def ticket(self) -> tuple[int, int]:
        return self.id, self.fence

    @property
    def polled(self) -> bool:
        """Whether its holder only polls."""
        return self.status == "running" and self.history[-1][1] != "running"


EXPECTED = tuple(one.name for one in fields(Row) if one.name != "history")


def doubled(base: float, times: int, cap: timedelta = HOUR) -> timedelta:
    return min(timedelta(seconds=base * 2**times), cap)


def fivefold(times: int) -> timedelta:
    return min(timedelta(seconds=5 * 5**times), timedelta(seconds=300))


class Reference:
    def __init__(self, clock: SettableClock) -> None:
        self.clock = clock
        self.rows: dict[int, Row] = {}

    def _of(self, kind: str, key: str) -> list[Row]:
        return [row for row in self.rows.values() if (row.kind, row.key) == (kind, key)]

    def waiting(self, kind: str, key: str) -> Row | None:
        return next((row for row in self._of(kind, key) if row.status in WAITING), None)

    def running(self, kind: str, key: str) -> Row | None:
        return next((row for row in self._of(kind, key) if row.status == "running"), None)

    def counting(self, kind: str, key: str) -> list[Row]:
        """What was tried to the end or cancelled, and not replaced by a later decision."""
        decided = [row for row in self._of(kind, key) if row.status in TRIED | {"cancelled"}]
        return [
            row
            for row in sorted(decided, key=lambda row: row.id)
            if not any(
                later.id > row.id and (later.status in TRIED or later.fingerprint == row.fingerprint)
                for later in decided
            )
        ]

    def decided(self, item: WorkRequest) -> Row | None:
        """The row that decides about a request."""
        rows = reversed(self.counting(item.kind, item.key))
        return next((row for row in rows if item.once or row.fingerprint == item.fingerprint), None)

    def finished_by(self, run: str, kind: str, key: str) -> Row | None:
        rows = [row for row in self._of(kind, key) if row.status in FINISHED and row.run_id == run]
        return None if run in WORKERS else max(rows, key=lambda row: row.id, default=None)

    def due(self, kind: str, now: datetime) -> set[int]:
        return {
            row.id
            for row in self.rows.values()
            if row.kind == kind
            and row.status in WAITING
            and row.not_before <= now
            and self.running(kind, row.key) is None
        }

    def leased_under(self, ticket: Work) -> Row | None:
        row = self.rows.get(ticket.id)
        return row if row and row.status == "running" and row.fence == ticket.fence else None

    def orphans(self, finished: Sequence[str], machine_now: datetime) -> set[int]:
        return {
            row.id
            for row in self.rows.values()
            if row.status == "running"
            and (
                (row.run_id in finished and row.run_id not in WORKERS)
                or (row.lease_until is not None and row.lease_until < machine_now)
            )
        }

    def refusals(self) -> list[Row]:
        return [
            row
            for row in self.rows.values()
            if row.status in ("failed", "cancelled") and row in self.counting(row.kind, row.key)
        ]

    def create(self, row: Row) -> None:
        self.rows[row.id] = row
        self.change(row, "created")

    def change(self, row: Row, event: str, **values: Any) -> None:
        for name, value in values.items():
            setattr(row, name, value)
        row.updated_at = self.clock()
        if event:
            row.history.append((event, row.status, row.attempts))

    def requested(self, item: WorkRequest, now: datetime) -> Row | None:
        """The generation this request must create, without its id; None where none may be."""
        due = item.not_before or now
        fixed = item.not_before is not None
        row = Row(0, item.kind, item.key, item.fingerprint, item.once, due, not_before_fixed=fixed)
        if self.waiting(item.kind, item.key):
            return None
        if running := self.running(item.kind, item.key):
            return None if running.fingerprint == item.fingerprint else row
        last = self.decided(item)
        if last is None:
            return row
        if item.once or last.status in ("failed", "cancelled"):
            return None
        assert last.finished_at is not None
        if now - last.finished_at <= LEASE:
            row.recurrence = last.recurrence + 1
            wait = doubled(30, row.recurrence - 3) if row.recurrence > 2 else timedelta(0)
            row.not_before = max(due, last.finished_at + wait)
        return row

    def requested_again(self, row: Row, item: WorkRequest, now: datetime) -> None:
        """A waiting row takes the newer request."""
        untouched = row.status == "queued" and row.dispatch_id is None and row.attempts == 0
        if untouched and row.fingerprint != item.fingerprint:
            row.not_before, row.recurrence = item.not_before or now, 0
            row.not_before_fixed = item.not_before is not None
        self.change(row, "updated", fingerprint=item.fingerprint, once=item.once)

    def dispatched(self, row: Row, dispatch_id: str, now: datetime) -> None:
        self.change(
            row,
            "dispatched",
            status="queued",
            dispatch_id=dispatch_id,
            dispatches=row.dispatches + 1,
            not_before=now + timedelta(seconds=120),
            not_before_fixed=False,
        )

    def unclaimed(self, row: Row, now: datetime) -> None:
        wait = doubled(60, row.dispatches - 1, timedelta(minutes=15))
        self.change(row, "unclaimed", dispatch_id=None, not_before=now + wait)

    def claimed(self, row: Row, holder: str, lease_until: datetime, *, poll: bool = False) -> None:
        again = row.run_id == holder and holder not in WORKERS
        event = "" if poll else "adopted" if row.status == "running" else "claimed"
        self.change(
            row,
            event,
            status="running",
            run_id=holder,
            lease_until=lease_until,
            fence=row.fence + 1,
            attempts=row.attempts + (not again and not poll),
            dispatches=0,
        )
        if event:
            row.history[-1] = (event, "running", row.attempts)

    def ends(self, row: Row, status: str, event: str, now: datetime, **values: Any) -> None:
        fence = row.fence + 1
        self.change(row, event, status=status, lease_until=None, fence=fence, finished_at=now, **values)

    def waits(self, row: Row, status: str, event: str, **values: Any) -> None:
        """The row waits again; or a newer request that waits already inherits what it went through."""
        now, heir = self.clock(), self.waiting(row.kind, row.key)
        if heir is None or heir is row:
            values = {"dispatch_id": None, "not_before_fixed": False, **values}
            self.change(row, event, status=status, lease_until=None, fence=row.fence + 1, **values)
            return
        self.change(
            heir,
            "inherited",
            status=status,
            error=values.get("error", row.error),
            attempts=values.get("attempts", row.attempts),
            crash_count=values.get("crash_count", row.crash_count),
            deaths=values.get("deaths", row.deaths),
            not_before=max(heir.not_before, values["not_before"]),
            not_before_fixed=heir.not_before_fixed or values.get("not_before_fixed", False),
        )
        self.ends(row, "superseded", "superseded", now, error=values.get("error", row.error))

    def ended(self, row: Row, how: Ending) -> None:
        now = self.clock()
        if how.verb in ("complete", "skip"):
            status = "completed" if how.verb == "complete" else "skipped"
            self.ends(row, status, status, now, error=None)
        elif how.verb == "fail":
            self.ends(row, "failed", "failed", now, error=how.text)
        elif how.verb == "release":
            values = {"attempts": max(row.attempts - 1, 0), "run_id": None, "not_before": now}
            self.waits(row, "queued", "released", **values)
        elif how.verb == "repeat":
            values = {"error": how.text, "not_before": now + RETRY_IN + LEASE}
            self.waits(row, "queued", "pass_failed", dispatch_id=row.dispatch_id, **values)
        else:
            self._deferred(row, how, now)

    def _deferred(self, row: Row, how: Ending, now: datetime) -> None:
        error = how.text if how.error else row.error
        crash_count = row.crash_count + how.unclassified
        finite = row.kind == FINITE.name
        hopeless = (finite and row.attempts >= 3) or (how.unclassified and crash_count >= 3)
        retry_after = getattr(how.error, "retry_after", None)
        if how.after is not None:
            due = now + how.after
        elif hopeless:
            self.ends(row, "failed", "failed", now, crash_count=crash_count, deaths=0, error=error)
            return
        elif how.unclassified:
            due = now + fivefold(crash_count - 1)
        else:
            due = now + (retry_after or doubled(10 if finite else 60, max(row.attempts - 1, 0)))
        quiet = row.polled and row.history[-1][1] == "deferred" and error == row.error
        event = "" if quiet else "deferred"
        values = {"crash_count": crash_count, "deaths": 0, "not_before": due, "error": error}
        self.waits(row, "deferred", event, not_before_fixed=bool(how.after or retry_after), **values)

    def orphaned(self, row: Row, machine_now: datetime) -> None:
        now = self.clock()
        values = {"deaths": row.deaths + 1, "attempts": max(row.attempts - (not row.polled), 0)}
        if values["deaths"] >= DEATHS:
            self.ends(row, "failed", "abandoned", now, error="abandoned", **values)
            return
        assert row.lease_until is not None
        alive = row.lease_until - LEASE
        wait = min(timedelta(minutes=5**row.deaths), HOUR) - (machine_now - alive)
        self.waits(row, "queued", "orphaned", not_before=now + max(wait, timedelta(0)), **values)

"""A market in memory: a calendar with real holidays, and partitions that a test may damage.

`Market.work` does what the asset of a due verdict would do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from domain.market.catalogue import Catalogue, catalogue
from domain.market.derived import adjusted_inputs, coverage_inputs
from domain.market.history import Recorded, differing, judged_tables
from domain.market.observed import Observed, Rules
from domain.market.plan import plan, window, years_wanted
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, REVISIONS
from domain.market.trading import TradingCalendar
from domain.shared.state import PartitionState
from domain.shared.table import ABSENT, ALL, Version
from domain.shared.verdict import Plan, Verdict

SHANGHAI = ZoneInfo("Asia/Shanghai")
CATALOGUE = catalogue()
DAILY = tuple(e.name for e in CATALOGUE.daily)
JUDGED = tuple(e.name for e in CATALOGUE.daily if e.expected != "unknown")
CALENDAR, STOCKS = CATALOGUE.calendar.name, CATALOGUE.stocks.name
ADJUSTED, COVERED, REVISED = ADJUSTED_DAILY.table, COVERAGE.table, REVISIONS.table
RULES = Rules(configuration="as set")
LISTED = 1_000
TUESDAY = date(2026, 11, 17)


def shanghai_time(text: str) -> datetime:
    """`2026-11-17 18:30` on Shanghai's clocks."""
    return datetime.fromisoformat(text).replace(tzinfo=SHANGHAI)


def days(*texts: str) -> tuple[date, ...]:
    return tuple(map(date.fromisoformat, texts))


def _run(first: str, last: str) -> set[date]:
    begin, end = days(first, last)
    return {begin + timedelta(days=n) for n in range((end - begin).days + 1)}


CLOSED = frozenset(
    _run("2026-01-01", "2026-01-03")
    | _run("2026-02-15", "2026-02-23")
    | _run("2026-05-01", "2026-05-05")
    | _run("2026-10-01", "2026-10-08")
    | _run("2027-01-01", "2027-01-03")
)


_WEEKDAYS = tuple(d for d in sorted(_run("2025-01-01", "2027-12-31")) if d.weekday() < 5)


@cache
def trading_calendar(closed: frozenset[date] = CLOSED) -> TradingCalendar:
    """The years 2025 to 2027."""
    return TradingCalendar.of((d for d in _WEEKDAYS if d not in closed), (2025, 2026, 2027))


def content(rows: int, words: str = "") -> Version:
    return Version(rows, f"{rows}{words}") if rows else ABSENT


def state(
    rows: int,
    checked: datetime,
    *,
    words: str = "",
    seen: int = 1,
    fetches: int = 1,
    inputs: Mapping[str, str] | None = None,
) -> PartitionState:
    """The state of a partition whose version is its record."""
    version = content(rows, words)
    return PartitionState(
        version=version,
        recorded=version,
        seen_count=seen,
        committed_at=checked,
        checked_at=checked,
        inputs=inputs or {},
        detail={"fetches": fetches},
    )


def corrupt(healthy: PartitionState) -> PartitionState:
    return replace(healthy, version=Version(0, "", corrupt=True))


UNAVAILABLE = "file:///lake/x.parquet cannot be read now: Input/output error"


def unavailable(healthy: PartitionState) -> PartitionState:
    return replace(healthy, version=Version(0, "", unavailable=UNAVAILABLE))


@dataclass
class Market:
    """A lake and its records in memory. `source` holds the number of rows where it is not all."""

    now: datetime
    rules: Rules = RULES
    calendar: TradingCalendar = field(default_factory=trading_calendar)
    catalogue: Catalogue = CATALOGUE
    listed: int | None = LISTED
    states: dict[tuple[str, str], PartitionState] = field(default_factory=dict)
    source: dict[tuple[str, str], int] = field(default_factory=dict)
    revised: set[date] = field(default_factory=set)
    busy: set[date] = field(default_factory=set)

    @classmethod
    def healthy(cls, now: datetime | str, **settings: Any) -> Market:
        """Everything there is to do at `now` has just been done."""
        market = cls(shanghai_time(now) if isinstance(now, str) else now, **settings)
        market.settle()
        return market

    @property
    def observed(self) -> Observed:
        today = self.now.astimezone(SHANGHAI).date()
        days = map(str, self.calendar.between(today - timedelta(days=60), today))
        partitions = {*days, *(p for t, p in self.states if t in JUDGED)}
        return Observed(
            calendar=self.calendar,
            states=dict(self.states),
            expected={} if self.listed is None else {(t, p): self.listed for p in partitions for t in JUDGED},
            pending_revisions=frozenset(self.revised),
            busy_days=frozenset(self.busy),
            older=self.older,
        )

    @property
    def older(self) -> frozenset[date]:
        """The days before the window that differ from their records."""
        tables, end = judged_tables(self.catalogue), str(min(self.window, default=date.min))
        older = {p: s for p, s in self.states.items() if p[1] < end and not s.never_made}
        held = {t: {p: str(s.version) for (n, p), s in older.items() if n == t} for t in tables}
        records = {
            t: {
                p: Recorded(str(s.recorded), s.inputs, s.detail.get("status"), s.seen_count)
                for (n, p), s in older.items()
                if n == t and s.recorded is not None
            }
            for t in tables
        }
        found = map(date.fromisoformat, differing(self.catalogue, held, records))
        return frozenset(filter(self.calendar.is_open, found))

    @property
    def plan(self) -> Plan:
        return plan(self.catalogue, self.observed, self.now, self.rules)

    @property
    def window(self) -> tuple[date, ...]:
        return window(Observed(self.calendar, {}), self.now, self.rules)

    def at(self, now: str) -> Market:
        """The same market at another time."""
        return replace(self, now=shanghai_time(now))

    def verdict(self, table: str, partition: date | str) -> Verdict:
        [verdict] = [v for v in self.plan.verdicts if (v.table, v.partition) == (table, str(partition))]
        return verdict

    def due(self) -> set[str]:
        return {v.key for v in self.plan.due}

    def change(self, table: str, partition: date | str, **records: Any) -> None:
        self.states[table, str(partition)] = replace(self.states[table, str(partition)], **records)

    def drop(self, table: str, partition: date | str) -> None:
        """Delete the rows and keep their record."""
        self.change(table, partition, version=ABSENT)

    def forget(self, table: str, partition: date | str) -> None:
        del self.states[table, str(partition)]

    def put(self, table: str, partition: date | str, rows: int, **records: Any) -> None:
        self.states[table, str(partition)] = state(rows, records.pop("checked", self.now), **records)

    def settle(self) -> int:
        """Work until nothing is due and return the number of passes."""
        for passes in range(10):
            due = self.plan.due
            if not due:
                return passes
            for verdict in due:
                self.work(verdict)
        raise AssertionError(f"the plan never ends: {self.due()}")

    def work(self, verdict: Verdict) -> None:
        """What the asset of this table does with this partition, if all goes well."""
        table, partition = verdict.table, verdict.partition
        if table == REVISED:
            self.revised.discard(date.fromisoformat(partition))
        elif table in (ADJUSTED, COVERED):
            self._derive(table, partition)
        else:
            self._fetch(table, partition)

    def _fetch(self, table: str, partition: str) -> None:
        whole = self.listed or LISTED if table in (*JUDGED, STOCKS) else 0
        rows = self.source.get((table, partition), 365 if table == CALENDAR else whole)
        before = self.states.get((table, partition), PartitionState())
        again = before.recorded == content(rows)
        self.put(
            table,
            partition,
            rows,
            seen=before.seen_count + 1 if again else 1,
            fetches=int(before.detail.get("fetches", 0)) + 1,
        )

    def _derive(self, table: str, partition: str) -> None:
        seen = self.observed
        inputs = (
            adjusted_inputs(seen, partition)
            if table == ADJUSTED
            else coverage_inputs(self.catalogue, seen, partition)
        )
        if inputs is not None:
            self.put(table, partition, len(DAILY) if table == COVERED else LISTED, inputs=inputs)


def reference_keys(now: datetime) -> set[str]:
    return {f"{STOCKS}:{ALL}", *(f"{CALENDAR}:{year}" for year in years_wanted(now, RULES))}

"""The market domain put together: its tables, its ledger, its source, its clock. No Dagster here.

Assets, sensors and the command all work through this service, so they see the same state and follow the
same plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pyarrow as pa

from domain.market.catalogue import Catalogue, Endpoint
from domain.market.completeness import EMPTY_ANSWER, NOT_ANNOUNCED, STOCK_LIST_MISSING, THINNER
from domain.market.history import History
from domain.market.observed import Observed, Rules
from domain.market.plan import FILL, judge_day, needs_work, plan, window, years_wanted
from domain.market.reckoning import expected_rows
from domain.market.tables import DERIVED
from domain.market.trading import TradingCalendar, calendar_owed, shanghai
from domain.shared.clock import Clock
from domain.shared.health import SourceFreshness
from domain.shared.state import PartitionState
from domain.shared.table import ABSENT, ALL, Table
from domain.shared.verdict import Plan, Verdict
from domain.shared.work import ACTIVE, Work
from resources.lake.error import DataUnavailable
from services.market.history import Comparison
from services.materialize import Materialization
from services.partitions import Attempt, Notify, state_of

if TYPE_CHECKING:
    from resources.lake.client import Lake
    from resources.ledger.client import Ledger
    from resources.ledger.freshness import Freshness
    from resources.ledger.provenance import Provenance
    from resources.tushare.client import TushareClient
    from services.market.asking import KeptAnswers

NO_FAILURE = (EMPTY_ANSWER, NOT_ANNOUNCED, STOCK_LIST_MISSING, THINNER)
"""Reason codes of answers that are not kept, though the source did answer."""
LEADING = "SSE"
"""The exchange whose open days are the market's."""
JUDGED_AT_ONCE = 60
"""Older days that one pass judges: more than it starts, fewer than a history has."""
Made = TypeVar("Made")


@dataclass
class MarketService:
    catalogue: Catalogue
    lake: Lake
    ledger: Ledger
    provenance: Provenance
    sources: Freshness
    clock: Clock
    rules: Rules
    connect: Callable[[], TushareClient]
    answers: KeptAnswers
    workers: int = 4
    comparison: Comparison = field(default_factory=Comparison, repr=False)
    _kept: dict[Hashable, tuple[Hashable, Any]] = field(default_factory=dict, repr=False)

    @cached_property
    def source(self) -> TushareClient:
        """Connected at the first use: processes that only read never load the client."""
        return self.connect()

    def disconnect(self) -> None:
        """Close idle connections to the source."""
        if "source" in vars(self):
            self.source.close()

    def calendar(self) -> TradingCalendar:
        """What the lake's calendar says; an unreadable one says nothing and is fetched again by the plan."""
        name = self.catalogue.calendar.name
        versions = self.lake.versions(f"market.{name}", self.lake.partitions(f"market.{name}"))
        whole = {year: v for year, v in versions.items() if v.rows and v.readable}
        return self._once("calendar", tuple(whole.items()), lambda: self._read_calendar(list(whole)))

    def _read_calendar(self, years: Sequence[str]) -> TradingCalendar:
        if not years:
            return TradingCalendar.of((), ())
        name = self.catalogue.calendar.name
        # Grouped by DuckDB: Arrow's own grouping imports pandas, which takes a fifth of a second.
        found = self.lake.query(
            "SELECT year, count(*) AS days, list(cal_date) FILTER (is_open) AS open_days "
            f"FROM market.{name} WHERE exchange = '{LEADING}' AND year IN ({', '.join(years)}) GROUP BY year",
            partitions={f"market.{name}": years},
        ).to_pylist()
        return TradingCalendar.of(
            [day for row in found for day in row["open_days"] or ()],
            [row["year"] for row in found if row["days"] >= calendar_owed(LEADING, row["year"])[1]],
        )

    def stocks(self) -> pa.Table:
        name = self.catalogue.stocks.table.name
        query = f"SELECT ts_code, list_date, delist_date FROM {name}"
        return self._once("stocks", self.lake.version(name, ALL), lambda: self.lake.query(query))

    def suspensions(self, days: Sequence[date]) -> pa.Table:
        return self.lake.query(
            "SELECT trade_date, ts_code, suspend_timing, suspend_type FROM market.suspensions "
            f"WHERE trade_date IN ({dates(days)})",
            partitions={"market.suspensions": [str(d) for d in days]},
        )

    def expected(self, days: Sequence[date]) -> dict[tuple[str, str], int | None]:
        """How many rows each daily table should have on each day; None where that is unknown."""
        listed = self.lake.version(self.catalogue.stocks.table.name, ALL)
        suspended = self.lake.versions("market.suspensions", [str(d) for d in days])
        if not listed.readable:
            return {}
        unknown = {d for d in days if not suspended[str(d)].readable}
        made_from = (*days, listed, *suspended.values())
        return self._once("expected", made_from, lambda: self._count_expected(days, unknown))

    def _count_expected(
        self, days: Sequence[date], unknown: Collection[date]
    ) -> dict[tuple[str, str], int | None]:
        """Return the counts. Suspensions of the days in `unknown` cannot be read: only tables that hold every
        listed stock are counted there."""
        stocks = self.stocks()
        if not days or not stocks.num_rows:
            return {}
        counts = expected_rows(days, stocks, self.suspensions([d for d in days if d not in unknown]))
        return {
            (e.name, str(day)): counts[day].get(e.expected)
            for e in self.catalogue.daily
            for day in days
            if day in counts and (day not in unknown or e.expected == "listed")
        }

    def listed_codes(self, day: date) -> list[str]:
        """The stocks listed on a day, sorted: how a full page is asked for again in parts."""
        listed = self.lake.query(
            f"SELECT ts_code FROM {self.catalogue.stocks.table.name} WHERE list_date <= DATE '{day}' "
            f"AND (delist_date IS NULL OR delist_date > DATE '{day}') ORDER BY ts_code"
        )
        codes: list[str] = listed["ts_code"].to_pylist()
        return codes

    def _once(self, name: Hashable, made_from: Hashable, make: Callable[[], Made]) -> Made:
        """What was made last under this name, unless the versions it was made from have changed."""
        known = self._kept.get(name)
        if known is not None and known[0] == made_from:
            return cast("Made", known[1])
        made = make()
        self._kept[name] = (made_from, made)
        return made

    def state(self, table: str, partition: str) -> PartitionState:
        return self.states([table], [partition])[table, partition]

    def states(
        self, tables: Iterable[str], partitions: Sequence[str]
    ) -> dict[tuple[str, str], PartitionState]:
        """The present state of partitions: what the lake holds and what was recorded."""
        names = [f"market.{t}" for t in tables]
        records = self.provenance.records(names, partitions)
        return {
            (name.split(".", 1)[1], p): state_of(version, records.get((name, p)))
            for name, versions in self.lake.holdings(dict.fromkeys(names, partitions)).items()
            for p, version in versions.items()
        }

    def source_freshness(self) -> list[SourceFreshness]:
        """When every source of the catalogue last answered and last failed, also one that was never asked."""
        rows = {row.source: row for row in self.sources.all("tushare")}
        return [
            rows.get(endpoint.source) or SourceFreshness(endpoint.source)
            for endpoint in self.catalogue.endpoints
        ]

    def materialization(
        self, kind: str, table: Table, this: Attempt, report: Notify, **how: Any
    ) -> Materialization:
        return Materialization(self.lake, self.ledger, self.provenance, kind, [table], this, report, **how)

    def fetching(self, kind: str, endpoint: Endpoint, this: Attempt, report: Notify) -> Materialization:
        """The writing of what a source answers. A day whose content changes is a revision of the source's."""
        return self.materialization(
            kind,
            endpoint.table,
            this,
            report,
            source=endpoint.endpoint,
            revisions=endpoint.table.partition_kind == "day",
            allow_empty=endpoint.may_be_empty,
        )

    def note_source(self, endpoint: Endpoint, work: Materialization) -> None:
        """Note whether the source answered. One failure outweighs successes; an early day is none."""
        errors = [e for e in work.failures.values() if not isinstance(e, DataUnavailable)]
        failed = [e for e in errors if getattr(e, "reason_code", "") not in NO_FAILURE]
        if failed:
            self.sources.failed(endpoint.source, failed[0])
        elif work.committed:
            day = shanghai(self.clock()).date()
            newest, today = self.calendar().newest(1, day), str(day)
            of_today = work.committed.get(today, ABSENT).rows
            open_today = endpoint.table.partition_kind == "day" and newest and str(newest[0]) == today
            self.sources.succeeded(
                endpoint.source,
                rows_latest=work.committed[max(work.committed)].rows,
                rows_today=of_today if open_today else None,
            )

    def recent_rows(self, name: str, count: int = 60) -> dict[str, int]:
        """The rows of a table's newest partitions, as they were recorded."""
        records = sorted(self.provenance.records([name]).items())[-count:]
        return {partition: record.rows for (_, partition), record in records}

    def window(self) -> tuple[date, ...]:
        """The open days that every pass judges, oldest first."""
        return window(Observed(self.calendar(), {}), self.clock(), self.rules)

    def history(self) -> History:
        """The days before the window that are not as they were recorded, and those never fetched."""
        return self._history(self.calendar(), self.window(), math.inf)

    def _history(self, calendar: TradingCalendar, near: Sequence[date], patience: float) -> History:
        # Without a calendar no day is known to be open; the plan fetches it first.
        return self.comparison.until(self, calendar, near[0], patience) if near else History()

    def observe(self, now: datetime | None = None, patience: float = math.inf) -> Observed:
        """The state of all that the plan judges: the gap window, what differs before it, the references.

        `patience` bounds the seconds spent on older days of which no version is known yet, and the older days
        to the newest: after a loss of the ledger all of them differ.
        """
        now, calendar = now or self.clock(), self.calendar()
        near = window(Observed(calendar, {}), now, self.rules)
        history = self._history(calendar, near, patience)
        differing = history.differing if patience == math.inf else self._judged_next(history)
        older = differing | (self._filled_next(history) if self.rules.heal_history else set())
        seen = self.observe_days([*sorted(older), *near], calendar, now)
        every = self.comparison.ended and differing == history.differing
        return replace(seen, older=older, every=every, holes=history.holes, earlier=history.earlier)

    def _judged_next(self, history: History) -> frozenset[date]:
        """The newest days that differ: of those with work, which may be given up, and of the others."""
        if len(history.differing) <= JUDGED_AT_ONCE:
            return history.differing
        known = {row.partition for row in self.ledger.current((FILL,))}
        asked = sorted(day for day in history.differing if str(day) in known)
        others = sorted(history.differing.difference(asked))
        return frozenset((*asked[-JUDGED_AT_ONCE:], *others[-JUDGED_AT_ONCE:]))

    def _filled_next(self, history: History) -> set[date]:
        """The newest days that were never fetched, without those that the ledger has work of."""
        rows = self.ledger.find(FILL, status=ACTIVE, limit=None)
        asked = {date.fromisoformat(row.partition) for row in rows}
        return set(sorted(history.never_fetched - asked)[-JUDGED_AT_ONCE:])

    def observe_days(
        self,
        days: Sequence[date],
        calendar: TradingCalendar | None = None,
        now: datetime | None = None,
        tables: Collection[str] = (),
    ) -> Observed:
        """The same for any days, for example those of a backfill; of `tables` only, if any are named."""
        calendar = calendar or self.calendar()
        partitions = [str(d) for d in days]
        daily = [e.name for e in self.catalogue.daily]
        by_day = [*daily, *(t.table for t in DERIVED)]
        seen = {*tables, "suspensions"} if tables else set(by_day)
        states = self.states([t for t in by_day if t in seen], partitions)
        years = {str(y) for y in years_wanted(now or self.clock(), self.rules)}
        known = self.provenance.records([self.catalogue.calendar.table.name])
        states |= self.states([self.catalogue.calendar.name], sorted(years.union(p for _, p in known)))
        states |= self.states([self.catalogue.stocks.name], [ALL])
        return Observed(
            calendar=calendar,
            states=states,
            expected=self.expected(days),
            pending_revisions=frozenset(
                date.fromisoformat(r.partition) for r in self.provenance.pending_revisions()
            ),
            busy_days=self.busy_days(daily),
        )

    def busy_days(self, tables: Sequence[str]) -> frozenset[date]:
        rows = self.fills_under_way()
        return frozenset(date.fromisoformat(row.partition) for row in rows if row.table in tables)

    def fills_under_way(self, dispatches: Collection[str] = ()) -> list[Work]:
        """The fills that are running, or about to: a dispatched row is not due again for a while."""
        now = self.clock()
        rows = self.ledger.find(FILL, status=("queued", "running"), limit=None)
        return [
            row
            for row in rows
            # A queued row that waits without a dispatch is put off, not under way.
            if row.status == "running"
            or (row.dispatch_id is not None and (row.not_before > now or row.dispatch_id in dispatches))
        ]

    def plan(self, now: datetime | None = None) -> Plan:
        now = now or self.clock()
        return self.plan_of(self.observe(now), now)

    def needed(self, days: Sequence[date], tables: Collection[str]) -> dict[date, set[str]]:
        """Of `days`, those on which any of `tables` is not as it should be or cannot be read, and which."""
        needed: dict[date, set[str]] = {}
        for _, verdicts in self.judged(days, tables):
            for verdict in verdicts:
                if verdict.table in tables and needs_work(verdict):
                    needed.setdefault(date.fromisoformat(verdict.partition), set()).add(verdict.table)
        return needed

    def judged(
        self, days: Sequence[date], tables: Collection[str] = ()
    ) -> Iterator[tuple[Observed, list[Verdict]]]:
        """Yield what was observed of these days and the verdicts on it, one year at a time.

        Work on them does not count. Of fetched `tables` these alone are observed; what derives from others is
        judged by all of them.
        """
        now, calendar = self.clock(), self.calendar()
        alone = tables if {e.name for e in self.catalogue.daily}.issuperset(tables) else ()
        for _, year in groupby(sorted(days), key=lambda d: d.year):
            group = list(year)
            seen = replace(self.observe_days(group, calendar, now, alone), busy_days=frozenset())
            yield seen, [v for day in group for v in judge_day(self.catalogue, day, seen, now, self.rules)]

    def plan_of(self, seen: Observed, now: datetime) -> Plan:
        return plan(self.catalogue, seen, now, self.rules)


def dates(days: Sequence[date]) -> str:
    return ", ".join(f"DATE '{d.isoformat()}'" for d in days) or "NULL"

"""A backfill of days: which need work, in which runs they are filled, and what is left at the end.

Days far apart get a run each: of every partition of its span, complete or not, Dagster keeps some rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from domain.market.completeness import THINNER
from domain.market.plan import EXPLAINED, FILL, needs_work
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, REVISIONS
from domain.market.trading import newest_published, ranges, shanghai
from domain.shared.error import InvalidInput
from services.market.days import require_years

if TYPE_CHECKING:
    from domain.market.trading import TradingCalendar
    from domain.shared.verdict import Verdict
    from services.market.service import MarketService

DERIVED = tuple(t.table for t in (ADJUSTED_DAILY, COVERAGE, REVISIONS))
FAR = 20
"""Trading days between two needed ones from which on a run of its own costs less."""
RUNS = 12
"""At most, parted where most lies between: where the source is down each is tried as long as one would be."""


Piece = tuple[str, str, str]
"""Table, day, and why it is named."""


@dataclass(frozen=True)
class BackfillRequest:
    first: date | None
    last: date | None
    tables: tuple[str, ...]
    force: bool


@dataclass(frozen=True)
class Backfilled:
    days: int
    needed: int
    closed: int
    early: int
    failed: Sequence[Piece]
    ran_well: bool = True
    """A forced run may fail and leave every day whole: it had been so before."""
    partial: Sequence[Piece] = ()
    """Stored with 90 to 99 % of their rows."""
    kept: Sequence[Piece] = ()
    """Whole days of which the source now has fewer rows."""

    @property
    def ok(self) -> bool:
        return self.ran_well and not self.failed and not self.kept

    @property
    def pieces(self) -> list[Piece]:
        """All that is not whole, or not what was asked for."""
        return [*self.failed, *self.kept, *self.partial]

    @property
    def line(self) -> str:
        others = f"({self.closed} closed days{f', {self.early} not due yet' if self.early else ''})"
        if not self.days:
            return f"no trading day to fill {others}"
        outcome = "; ".join(self._not_whole)
        if not self.needed:
            outcome = outcome or f"all {self.days} trading days are whole"
            return f"nothing to do: {outcome} {others}"
        if not outcome:
            outcome = "all whole now" if self.ran_well else "the run failed, all are whole as before"
        return f"{self.needed} of {self.days} trading days needed work, {outcome} {others}"

    @property
    def _not_whole(self) -> Iterator[str]:
        if self.failed:
            yield f"{len(self.failed)} pieces are not whole"
        if self.kept:
            yield (
                f"{len(self.kept)} kept, as the source has fewer rows now ({_names(self.kept)}); "
                "--accept-thinner takes them"
            )
        if self.partial:
            yield f"{len(self.partial)} partial ({_names(self.partial)})"

    def as_json(self) -> dict[str, Any]:
        lists = {"failed": self.failed, "partial": self.partial, "kept": self.kept}
        return {
            "ok": self.ok,
            "trading_days": self.days,
            "needed": self.needed,
            "closed_days": self.closed,
            "not_due_yet": self.early,
            **{
                name: [{"table": t, "day": d, "why": w} for t, d, w in pieces]
                for name, pieces in lists.items()
            },
        }


def _names(pieces: Sequence[Piece]) -> str:
    first = ", ".join(f"{table} {day}" for table, day, _ in pieces[:3])
    return f"{first} and {len(pieces) - 3} more" if len(pieces) > 3 else first


class RunTables(Protocol):
    """Materializes tables in one run and returns whether it went well. `days`: the first and the last."""

    def __call__(
        self, tables: Sequence[str], *, partition: str = "", days: tuple[date, date] | None = None
    ) -> bool: ...


def run_backfill(market: MarketService, request: BackfillRequest, run: RunTables) -> Backfilled:
    """Fill what is not complete of the days asked for; with `force`, all of it."""
    check_range(market, request)
    _fetch_references(market, request, run)
    days, closed, early = days_asked(market, request, market.calendar())
    tables = tables_asked(market, request)
    wrong = {day: set(tables) for day in days} if request.force else market.needed(days, tables)
    needed, began = sorted(wrong), market.ledger.clock()
    ran_well = _fill(market, request, run, wrong)
    judged = [v for _, verdicts in market.judged(days, tables) for v in verdicts if v.table in tables]
    return Backfilled(
        len(days),
        len(needed),
        closed,
        early,
        _incomplete(market, judged),
        ran_well,
        partial=_partial(judged),
        kept=_kept(market, needed, began) if request.force else (),
    )


def _fill(
    market: MarketService, request: BackfillRequest, run: RunTables, wrong: Mapping[date, Collection[str]]
) -> bool:
    """Run after run, as long as each made something whole and left something; whether the last went well.

    One bad day ends the step that fetches, and Dagster then skips all that derives from it. Until there is a
    stock list only what is not counted by it is fetched.
    """
    tables = tables_asked(market, request)
    fetched = {e.name for e in market.catalogue.daily}.intersection(tables)
    uncounted = [e.name for e in market.catalogue.daily if e.expected == "unknown" and e.name in fetched]
    left, runs = wrong, list[bool]()
    while left:
        waits = not market.stocks().num_rows
        runs.append(_run_spans(market, run, uncounted if waits else tables, sorted(left)) and not waits)
        if runs[-1] or request.force:
            break
        if waits:
            _fetch_references(market, request, run)
        before, left = left, market.needed(sorted(wrong), fetched)
        if _pieces(left, fetched) >= _pieces(before, fetched) and not (waits and market.stocks().num_rows):
            break
    if request.tables or not all(runs):
        _run_spans(market, run, DERIVED, sorted(market.needed(sorted(wrong), DERIVED)))
    return not request.force or all(runs)


def _pieces(wrong: Mapping[date, Collection[str]], tables: Collection[str]) -> int:
    return sum(len({*names}.intersection(tables)) for names in wrong.values())


def _run_spans(market: MarketService, run: RunTables, tables: Sequence[str], days: Sequence[date]) -> bool:
    """One run after the other, whatever became of the one before; whether all went well."""
    ended = [run(tables, days=span) for span in spans(days, market.calendar())] if tables and days else []
    return all(ended)


def spans(needed: Sequence[date], calendar: TradingCalendar) -> list[tuple[date, date]]:
    """The first and last day of each run that it takes to have all of these days, which are sorted."""
    far = {pair: apart for pair in pairwise(needed) if (apart := len(calendar.between(*pair)) - 1) > FAR}
    widest = set(sorted(far, key=lambda pair: far[pair], reverse=True)[: RUNS - 1])
    return [(run[0], run[-1]) for run in ranges(needed, lambda *pair: pair in widest)]


def check_range(market: MarketService, request: BackfillRequest) -> None:
    if request.first is None or request.last is None:
        return
    if request.first > request.last:
        raise InvalidInput(f"the range ends before it begins: {request.first} > {request.last}")
    if request.first < market.rules.first_day:
        raise InvalidInput(
            f"the warehouse begins on {market.rules.first_day}",
            remedy=f"set PERENNIAL_MARKET_START={request.first} once: the home keeps it. "
            "Then restart `perennial up`",
        )
    today = shanghai(market.clock()).date()
    if request.last.year > today.year + 1:
        raise InvalidInput(
            f"the range ends on {request.last}, and no calendar is announced beyond {today.year + 1}",
            remedy=f"end it today, {today}: later days are not due yet",
        )


def years_asked(request: BackfillRequest) -> Sequence[int]:
    return range(request.first.year, request.last.year + 1) if request.first and request.last else ()


def _fetch_references(market: MarketService, request: BackfillRequest, run: RunTables) -> None:
    """The calendar of every year of the range, and the stock list, before anything else."""
    years = years_asked(request)
    for year in years:
        if year not in market.calendar().years:
            run([market.catalogue.calendar.name], partition=str(year))
    if not market.stocks().num_rows:
        run([market.catalogue.stocks.name])
    require_years(market, [date(year, 1, 1) for year in years])


def days_asked(
    market: MarketService, request: BackfillRequest, calendar: TradingCalendar
) -> tuple[list[date], int, int]:
    """The trading days asked for that are due, and how many of the range are closed or not due yet."""
    if request.first is None or request.last is None:
        history = market.history()
        return sorted(history.differing | history.never_fetched), 0, 0
    # A table that is published later than the daily pass would fail the whole run for its newest day.
    hours = [market.catalogue.by_name(name).published for name in request.tables] or [
        e.published for e in market.catalogue.daily
    ]
    newest = newest_published(calendar, market.clock(), max(market.rules.daily_at, *hours))
    asked = calendar.between(request.first, request.last)
    due = [day for day in asked if newest and day <= newest]
    closed = (request.last - request.first).days + 1 - len(asked)
    return due, closed, len(asked) - len(due)


def tables_asked(market: MarketService, request: BackfillRequest) -> list[str]:
    """Of one table alone, adjusted prices may have nothing to be made from: they follow where they can."""
    if request.tables:
        return [*request.tables, COVERAGE.table, REVISIONS.table]
    return [*(e.name for e in market.catalogue.daily), *DERIVED]


def _incomplete(market: MarketService, judged: Sequence[Verdict]) -> list[Piece]:
    """What is still not complete, and why, as the ledger says or the plan."""
    left = [v for v in judged if needs_work(v)]
    rows = {row.key: row for row in market.ledger.current((FILL,))} if left else {}
    reasons = {key: row.error or row.reason_code or row.status for key, row in rows.items()}
    return sorted((v.table, v.partition, reasons.get(v.key, v.reason).splitlines()[0]) for v in left)


def _partial(judged: Sequence[Verdict]) -> list[Piece]:
    codes = ("partial", EXPLAINED)
    return sorted(
        (v.table, v.partition, v.reason) for v in judged if v.reason_code in codes and not needs_work(v)
    )


def _kept(market: MarketService, days: Sequence[date], began: datetime) -> list[Piece]:
    """What the runs since then left as it was, as the source has fewer rows now."""
    asked = set(map(str, days))
    rows = market.ledger.find(FILL, status="skipped", reason_code=THINNER, since=began, limit=None)
    return sorted(
        {
            (row.table, row.partition, "the source has fewer rows now; what is there is kept")
            for row in rows
            if row.partition in asked
        }
    )

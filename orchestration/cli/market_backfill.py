"""A backfill by command: a run over the days that are not whole, with progress on a terminal.

Days far apart get a run each: of every day of its span, whole or not, a run keeps some events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from assets.policies.tags import ONLY, ONLY_NEEDED
from domain.market.plan import FILL
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, HISTORY_GAPS, REVISIONS
from domain.market.trading import newest_published, shanghai
from domain.shared.error import InvalidInput
from orchestration.cli.output import say
from orchestration.cli.progress import progress
from orchestration.cli.runner import Runner, runner, take_back, tell
from services.market.days import CalendarMissing

if TYPE_CHECKING:
    from domain.market.trading import TradingCalendar
    from orchestration.settings import Settings
    from services.market.service import MarketService

DERIVED = tuple(t.table for t in (ADJUSTED_DAILY, COVERAGE, REVISIONS))
FAR = 20
"""Trading days between two needed ones from which on a run of its own costs less."""
RUNS = 12
"""At most, parted where most lies between: where the source is down each is tried as long as one would be."""
BACKFILL_TAGS = {"dagster/priority": "-10", "dagster/max_runtime": str(7 * 24 * 3600)}


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
    failed: list[tuple[str, str, str]]
    ran_well: bool = True
    """A forced run may fail and leave every day whole: it had been so before."""

    @property
    def ok(self) -> bool:
        return self.ran_well and not self.failed

    @property
    def line(self) -> str:
        beside = f"({self.closed} closed days{f', {self.early} not due yet' if self.early else ''})"
        if not self.days:
            return f"no trading day to fill {beside}"
        if not self.needed:
            return f"nothing to do: all {self.days} trading days are whole {beside}"
        outcome = f"{len(self.failed)} pieces are not whole" if self.failed else "all whole now"
        if not self.ran_well and not self.failed:
            outcome = "the run failed, all are whole as before"
        return f"{self.needed} of {self.days} trading days needed work, {outcome} {beside}"

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "trading_days": self.days,
            "needed": self.needed,
            "closed_days": self.closed,
            "not_due_yet": self.early,
            "failed": [{"table": t, "day": d, "why": w} for t, d, w in self.failed],
        }


def run_backfill(settings: Settings, market: MarketService, request: BackfillRequest) -> Backfilled:
    _check_range(market, request)
    ran_well = True
    with runner(settings) as run:
        take_back(market.ledger, run)
        _references(market, run, request)
        days, closed, early = _days(market, request)
        tables = _tables(market, request)
        needed = days if request.force else _needed(market, days, tables)
        if needed:
            say(f"backfilling {len(needed)} of {len(days)} trading days, {needed[0]} to {needed[-1]}")
            tags = {**BACKFILL_TAGS, **({} if request.force else {ONLY: ONLY_NEEDED})}
            ran_well = _run_spans(run, tables, spans(needed, market.calendar()), tags)
            if request.tables or not ran_well:
                _derive_the_rest(market, run, needed)
        if request.first is None:
            # What the last look over the history found may be mended now: look again.
            tell("history", [HISTORY_GAPS.table], run.run([HISTORY_GAPS.table], domain="market"))
    _forget_what_is_done(market, days, tables)
    left = _not_whole(market, needed, tables)
    return Backfilled(len(days), len(needed), closed, early, left, ran_well)


def _run_spans(
    run: Runner, tables: Sequence[str], wanted: Sequence[tuple[date, date]], tags: Mapping[str, str]
) -> bool:
    """One run after the other, whatever became of the one before; returns whether all went well."""
    ran_well = True
    for first, last in wanted:
        with progress():
            end = run.run(tables, domain="market", days=(str(first), str(last)), tags=tags)
        tell(f"{first} … {last}", tables, end)
        ran_well = ran_well and end.success
    return ran_well


def spans(needed: Sequence[date], calendar: TradingCalendar) -> list[tuple[date, date]]:
    """The first and last day of each run that it takes to have all of these days, which are sorted."""
    far = {pair: apart for pair in pairwise(needed) if (apart := len(calendar.between(*pair)) - 1) > FAR}
    parted = sorted(sorted(far, key=lambda pair: far[pair], reverse=True)[: RUNS - 1])
    firsts = [needed[0], *(after for _, after in parted)]
    lasts = [*(before for before, _ in parted), needed[-1]]
    return list(zip(firsts, lasts, strict=True))


def _derive_the_rest(market: MarketService, run: Runner, days: list[date]) -> None:
    """What could not be derived in the same run: one bad day ends the step that fetches, and Dagster then
    skips what derives from it for all days."""
    rest = sorted(market.needed(days, DERIVED))
    if rest:
        _run_spans(run, DERIVED, spans(rest, market.calendar()), {**BACKFILL_TAGS, ONLY: ONLY_NEEDED})


def _check_range(market: MarketService, request: BackfillRequest) -> None:
    if request.first is None or request.last is None:
        return
    if request.first > request.last:
        raise InvalidInput(f"the range ends before it begins: {request.first} > {request.last}")
    if request.first < market.rules.first_day:
        raise InvalidInput(
            f"the warehouse begins on {market.rules.first_day}", remedy="see PERENNIAL_MARKET_START"
        )
    today = shanghai(market.clock()).date()
    if request.last.year > today.year + 1:
        raise InvalidInput(
            f"the range ends on {request.last}, and no calendar is announced beyond {today.year + 1}",
            remedy=f"end it today, {today}: later days are not due yet",
        )


def _references(market: MarketService, run: Runner, request: BackfillRequest) -> None:
    """The calendar of every year of the range, and the stock list, before anything else."""
    years = range(request.first.year, request.last.year + 1) if request.first and request.last else []
    known = market.calendar().years
    for year in years:
        if year not in known:
            name = market.catalogue.calendar.name
            tell(str(year), [name], run.run([name], domain="market", partition=str(year)))
    if not market.stocks().num_rows:
        name = market.catalogue.stocks.name
        tell("ALL", [name], run.run([name], domain="market"))


def _days(market: MarketService, request: BackfillRequest) -> tuple[list[date], int, int]:
    """The trading days asked for that are due, and how many of the range are closed or not due yet."""
    calendar = market.calendar()
    if request.first is None or request.last is None:
        gaps = market.lake.query("SELECT DISTINCT trade_date FROM market.history_gaps ORDER BY 1")
        return gaps["trade_date"].to_pylist(), 0, 0
    if missing := [y for y in range(request.first.year, request.last.year + 1) if y not in calendar.years]:
        raise CalendarMissing(
            f"the trading calendar of {', '.join(map(str, missing))} could not be had",
            remedy="see `perennial work list --key normalized_trade_cal`",
        )
    # A table that is published later than the daily look would fail the whole run for its newest day.
    hours = [market.catalogue.by_name(name).published for name in request.tables] or [
        e.published for e in market.catalogue.daily
    ]
    newest = newest_published(calendar, market.clock(), max(market.rules.daily_at, *hours))
    asked = calendar.between(request.first, request.last)
    due = [day for day in asked if newest and day <= newest]
    closed = (request.last - request.first).days + 1 - len(asked)
    return due, closed, len(asked) - len(due)


def _tables(market: MarketService, request: BackfillRequest) -> list[str]:
    """Of one table alone, adjusted prices may have nothing to be made from: they follow where they can."""
    if request.tables:
        return [*request.tables, COVERAGE.table, REVISIONS.table]
    return [*(e.name for e in market.catalogue.daily), *DERIVED]


def _needed(market: MarketService, days: list[date], tables: list[str]) -> list[date]:
    """The days of which anything asked for is not as it should be."""
    return sorted(market.needed(days, tables))


def _forget_what_is_done(market: MarketService, days: list[date], tables: list[str]) -> None:
    """End work that waits for days which are whole meanwhile: a worker killed between the record of a day
    and the end of its work leaves such rows, and each would cost a run that finds nothing to do."""
    from resources.ledger.standing import DONE_MEANWHILE

    asked = {f"{table}:{day}": (table, day) for day in days for table in tables}
    waiting = [
        row
        for row in market.ledger.find(FILL, status=("queued", "deferred"), limit=None)
        if row.key in asked and row.dispatch_id is None
    ]
    wrong = market.needed(sorted({asked[row.key][1] for row in waiting}), tables)
    done = [row for row in waiting for table, day in [asked[row.key]] if table not in wrong.get(day, ())]
    market.ledger.withdraw(done, reason_code=DONE_MEANWHILE)


def _not_whole(market: MarketService, days: list[date], tables: list[str]) -> list[tuple[str, str, str]]:
    """What the ledger says of the days that are still not whole."""
    left = set(map(str, _needed(market, days, tables)))
    if not left:
        return []
    rows = market.ledger.find(FILL, status=("queued", "deferred", "running", "failed"), limit=None)
    told = {row.key: (row.error or row.reason_code or row.status).splitlines()[0] for row in reversed(rows)}
    return [
        (name, day, why)
        for key, why in sorted(told.items())
        for name, day in [key.split(":", 1)]
        if day in left
    ] or [("?", day, "not whole") for day in sorted(left)]

"""What a backfill would do: which days, why, and how many calls that takes. Nothing is fetched or written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from domain.market.plan import needs_work
from domain.market.trading import TradingCalendar, ranges
from services.market.backfill import BackfillRequest, check_range, days_asked, tables_asked, years_asked
from services.market.fetch import calls_for

if TYPE_CHECKING:
    from services.market.service import MarketService


class Needed(NamedTuple):
    """A day of a table that a backfill would make."""

    day: date
    table: str
    why: str


@dataclass(frozen=True)
class Preview:
    days: Sequence[date]
    """The trading days asked for that are due."""
    needed: Sequence[Needed]
    closed: int
    early: int
    fetched: frozenset[str]
    """The tables that come from the source."""
    calls: int
    """How many calls these tables take, if each is answered well at once."""
    assumed: Sequence[int]
    """Years whose calendar is not there yet: their weekdays count as trading days."""
    pace: int | None
    """Calls a minute; None if the source does not count them."""

    @property
    def minutes(self) -> int:
        """At least, beyond the first minute's calls."""
        return max(self.calls - 1, 0) // self.pace if self.pace else 0

    @property
    def lines(self) -> list[str]:
        needed = len({one.day for one in self.needed})
        found = [
            f"{needed} of {len(self.days)} trading days need work ({self.closed} closed days{self._early})"
        ]
        if self.assumed:
            years = f"{self.assumed[0]}" + (f" to {self.assumed[-1]}" if len(self.assumed) > 1 else "")
            found.append(f"the calendar of {years} is fetched first: here its weekdays count as trading days")
        pace = (
            f"at {self.pace:,} a minute: {self._duration}" if self.pace else "which the source does not count"
        )
        found.append(
            f"at least {self.calls:,} calls of the source, {pace}" if self.calls else "no call of the source"
        )
        return found

    @property
    def _early(self) -> str:
        return f", {self.early} not due yet" if self.early else ""

    @property
    def _duration(self) -> str:
        if not self.minutes:
            return "less than a minute"
        hours, minutes = divmod(self.minutes, 60)
        return f"at least {f'{hours} h ' if hours else ''}{minutes} min"

    def ranges(self) -> Iterator[tuple[date, date, int, str, str]]:
        """First day, last day, number of days, tables and reason of what is needed, newest last."""
        by_day = {
            day: tuple((one.table, one.why) for one in group)
            for day, group in groupby(sorted(self.needed), key=lambda one: one.day)
        }
        for days in ranges(self.days, lambda before, after: by_day.get(before) != by_day.get(after)):
            alike = by_day.get(days[0], ())
            # What derives from a day follows it.
            shown = [one for one in alike if one[0] in self.fetched] or alike
            for why in dict.fromkeys(why for _, why in shown):
                names = ", ".join(table for table, reason in shown if reason == why)
                yield days[0], days[-1], len(days), names, why

    def as_json(self) -> dict[str, Any]:
        return {
            "trading_days": len(self.days),
            "closed_days": self.closed,
            "not_due_yet": self.early,
            "calls": self.calls,
            "calls_per_minute": self.pace,
            "minutes": self.minutes,
            "assumed_years": list(self.assumed),
            "needed": [one._asdict() for one in self.needed],
        }


def preview_backfill(market: MarketService, request: BackfillRequest, pace: int | None) -> Preview:
    """What `run_backfill` would make of this request now."""
    check_range(market, request)
    calendar = market.calendar()
    assumed = [year for year in years_asked(request) if year not in calendar.years]
    days, closed, early = days_asked(market, request, _assumed(calendar, assumed))
    tables = tables_asked(market, request)
    if request.force:
        needed = [Needed(day, table, "requested") for day in days for table in tables]
    else:
        known = [day for day in days if calendar.knows(day)]
        needed = [
            Needed(date.fromisoformat(v.partition), v.table, v.reason_code)
            for _, verdicts in market.judged(known, tables)
            for v in verdicts
            if v.table in tables and needs_work(v)
        ]
        needed += [Needed(d, t, "missing") for d in days if not calendar.knows(d) for t in tables]
    fetched = {e.name: e for e in market.catalogue.daily}
    calls = sum(
        calls_for(endpoint, [one.day for one in needed if one.table == name])
        for name, endpoint in fetched.items()
    )
    return Preview(days, needed, closed, early, frozenset(fetched), calls, assumed, pace)


def _assumed(calendar: TradingCalendar, years: Sequence[int]) -> TradingCalendar:
    """The calendar with every weekday of these years."""
    days = (date(year, 1, 1) + timedelta(days=n) for year in years for n in range(366))
    weekdays = {day for day in days if day.weekday() < 5 and day.year in years}
    return TradingCalendar.of({*calendar.open_days, *weekdays}, {*calendar.years, *years})

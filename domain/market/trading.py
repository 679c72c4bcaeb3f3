"""The trading calendar as a value, and when a day is due. All wall-clock times are Asia/Shanghai."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from domain.market.catalogue import Endpoint

SHANGHAI = ZoneInfo("Asia/Shanghai")
OPENED = {"SSE": date(1990, 12, 19), "SZSE": date(1991, 7, 3), "BSE": date(2021, 11, 15)}
"""The exchanges and their first trading days; before it, no exchange owes a calendar."""


def calendar_owed(exchange: str, year: int) -> tuple[date, int]:
    """Return the first day that a year's calendar must have, and how many days."""
    first = max(date(year, 1, 1), OPENED[exchange])
    return first, max((date(year, 12, 31) - first).days + 1, 0)


@dataclass(frozen=True)
class TradingCalendar:
    """The open days of the leading exchange (SSE), sorted, and the years that the calendar covers."""

    open_days: tuple[date, ...]
    years: frozenset[int]

    @classmethod
    def of(cls, open_days: Iterable[date], years: Iterable[int]) -> TradingCalendar:
        return cls(tuple(sorted(set(open_days))), frozenset(years))

    def knows(self, day: date) -> bool:
        return day.year in self.years

    def is_open(self, day: date) -> bool:
        return bool(self.between(day, day))

    def between(self, first: date, last: date) -> tuple[date, ...]:
        """Open days from `first` to `last`, both included."""
        return self.open_days[bisect_left(self.open_days, first) : bisect_right(self.open_days, last)]

    def follow(self, before: date, after: date) -> bool:
        """Whether both are open, and no open day lies between."""
        return len(self.between(before, after)) == 2

    def newest(self, count: int, last: date) -> tuple[date, ...]:
        """The `count` newest open days that are not after `last`."""
        high = bisect_right(self.open_days, last)
        return self.open_days[max(0, high - count) : high]


def ranges(days: Iterable[date], parted: Callable[[date, date], object]) -> Iterator[tuple[date, ...]]:
    """Yield sorted days in ranges: one ends where its last day is parted from the next."""
    found: list[date] = []
    for day in days:
        if found and parted(found[-1], day):
            yield tuple(found)
            found = []
        found.append(day)
    if found:
        yield tuple(found)


def shanghai(moment: datetime) -> datetime:
    return moment.astimezone(SHANGHAI)


def at(day: date, hour: time) -> datetime:
    return datetime.combine(day, hour, tzinfo=SHANGHAI)


def due_at(endpoint: Endpoint, day: date, daily_at: time) -> datetime:
    """Return from when a day is due: the daily schedule's hour, or publication if that is later."""
    return at(day, max(daily_at, endpoint.published))


def published_at(endpoint: Endpoint, day: date) -> datetime:
    """Return from when the source has a day."""
    return at(day, endpoint.published)


def newest_published(calendar: TradingCalendar, now: datetime, daily_at: time) -> date | None:
    """Return the newest open day that is due."""
    local = shanghai(now)
    last = local.date() if local.time() >= daily_at else local.date() - timedelta(days=1)
    newest = calendar.newest(1, last)
    return newest[0] if newest else None

"""Trading days: the real ones as far as they are recorded, then a continuation by the usual rules.

Days are counted: `index` is the number of a trading day, 0 being 1990-12-19. Everything in the market
is a function of that number.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Days = NDArray[np.datetime64]

LAST_YEAR = 2036
"""The continuation ends with this year."""

OPENED = {"SSE": date(1990, 12, 19), "SZSE": date(1991, 7, 3), "BSE": date(2021, 11, 15)}

# First days of the lunar year, dragon-boat and mid-autumn days: they cannot be computed in a few lines.
_SPRING = ("0206", "0126", "0213", "0203", "0123", "0211", "0131", "0219", "0208", "0128")
_DRAGON_BOAT = ("0609", "0528", "0616", "0605", "0624", "0612", "0601", "0620", "0610", "0530")
_MID_AUTUMN = ("0915", "1003", "0922", "0912", "1001", "0919", "0908", "0927", "0916", "1004")
_LUNAR_FROM = 2027


def _day(year: int, month_day: str) -> date:
    return date(year, int(month_day[:2]), int(month_day[2:]))


def _span(first: date, days: int) -> set[date]:
    return {first + timedelta(days=n) for n in range(days)}


def _bridged(day: date) -> set[date]:
    """A single-day holiday, joined to the weekend when only one weekday lies between."""
    if day.weekday() == 1:
        return _span(day - timedelta(days=1), 2)
    if day.weekday() == 3:
        return _span(day, 2)
    return {day}


def holidays_by_rule(year: int) -> set[date]:
    """Closed days of a year nobody has announced yet (weekends not included)."""
    lunar = year - _LUNAR_FROM
    return (
        _bridged(date(year, 1, 1))
        | _span(_day(year, _SPRING[lunar]) - timedelta(days=1), 8)
        | _bridged(date(year, 4, 4 if year % 4 < 2 else 5))
        | _span(date(year, 5, 1), 5)
        | _bridged(_day(year, _DRAGON_BOAT[lunar]))
        | _bridged(_day(year, _MID_AUTUMN[lunar]))
        | _span(date(year, 10, 1), 7)
    )


@dataclass(frozen=True)
class Calendar:
    """`days`: all trading days, ascending; `recorded_until`: the last day that is fact and not rule."""

    days: Days
    recorded_until: date

    @classmethod
    def load(cls) -> Calendar:
        record = json.loads(Path(__file__).with_name("holidays.json").read_text())
        recorded_until = date.fromisoformat(record["last"])
        closed, extra = set(record["closed_weekdays"]), record["open_weekends"]
        for year in range(recorded_until.year + 1, LAST_YEAR + 1):
            closed |= {day.isoformat() for day in holidays_by_rule(year)}
        every = np.arange(record["first"], f"{LAST_YEAR + 1}-01-01", dtype="datetime64[D]")
        is_open = np.is_busday(every) & ~np.isin(every, np.array(sorted(closed), dtype="datetime64[D]"))
        is_open |= np.isin(every, np.array(extra, dtype="datetime64[D]"))
        return cls(days=every[is_open], recorded_until=recorded_until)

    @cached_property
    def years(self) -> NDArray[np.int64]:
        """The year of each trading day."""
        return self.days.astype("datetime64[Y]").astype(np.int64) + 1970

    @cached_property
    def texts(self) -> list[str]:
        """Each trading day as Tushare writes it, `YYYYMMDD`."""
        return [text.replace("-", "") for text in np.datetime_as_string(self.days, unit="D").tolist()]

    def position(self, day: date) -> int:
        """The number of trading days before `day` (its own index if it is open)."""
        return int(np.searchsorted(self.days, np.datetime64(day, "D")))

    def index(self, day: date) -> int | None:
        """The index of `day`, None if the market is closed."""
        n = self.position(day)
        return n if n < len(self.days) and self.days[n] == np.datetime64(day, "D") else None

    def open_days(self, start: date, end: date) -> list[date]:
        """Trading days from `start` to `end`, both included, ascending."""
        found: list[date] = self.days[self.position(start) : self.position(end + timedelta(days=1))].tolist()
        return found

    def year_span(self, year: int) -> tuple[int, int]:
        """First index of `year` and first index after it."""
        return self.position(date(year, 1, 1)), self.position(date(year + 1, 1, 1))

"""The days before the gap window: compared with their records whenever anything may have changed.

A pass asks which snapshot of each table is current, which costs the same after one year as after ten. Only
if one is new, or the last comparison is some minutes old, are versions and records of all days compared. That
reads no data where the versions are cached; others are computed, for a bounded time per pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from threading import Lock
from typing import TYPE_CHECKING

from domain.market.history import History, Recorded, Records, differing, holes, judged_tables
from domain.shared.table import ABSENT, Version

if TYPE_CHECKING:
    from domain.market.trading import TradingCalendar
    from services.market.service import MarketService

COMPARED_AGAIN = 600.0
"""Seconds after which all is compared again: a lost file or an edited record makes no snapshot."""
PATIENCE = 15.0
"""Seconds after which a pass leaves earlier years to the next: a new machine has no version cached."""


@dataclass
class Comparison:
    """What one process knows of the older days, kept between its passes."""

    clock: Callable[[], float] = time.monotonic
    marks: object = None
    began: float = 0.0
    years: dict[str, set[str]] = field(default_factory=dict)
    """By year, the days that differ, as far as years were compared."""
    history: History = field(default_factory=History)
    ended: bool = False

    turn: Lock = field(default_factory=Lock, repr=False)
    """The sensors of a process share it."""

    def until(self, market: MarketService, calendar: TradingCalendar, end: date, patience: float) -> History:
        """Return what is known of the days before `end`, compared for at most `patience` seconds."""
        with self.turn:
            return self._until(market, calendar, end, patience)

    def _until(self, market: MarketService, calendar: TradingCalendar, end: date, patience: float) -> History:
        tables = [f"market.{t}" for t in (*judged_tables(market.catalogue), market.catalogue.calendar.name)]
        marks = (market.lake.marks(tables), calendar.years, end)
        now = self.clock()
        if marks != self.marks or now - self.began > COMPARED_AGAIN:
            self.marks, self.began, self.years, self.ended = marks, now, {}, False
        if not self.ended:
            self.history = self._compare(market, calendar, end, now + patience)
        return self.history

    def _compare(self, market: MarketService, calendar: TradingCalendar, end: date, latest: float) -> History:
        records = _records(market, str(end))
        days = {
            table: {d for d in market.lake.partitions(f"market.{table}") if d < str(end)} | of.keys()
            for table, of in records.items()
        }
        self.ended = True
        for year in sorted({day[:4] for of in days.values() for day in of}, reverse=True):
            if year not in self.years and self.clock() > latest:
                self.ended = False
                break
            if year not in self.years:
                self.years[year] = _differing(market, year, days, records)
        first = market.rules.first_day
        found = {date.fromisoformat(day) for of in self.years.values() for day in of}
        had = {e.name: set(map(date.fromisoformat, days[e.name])) for e in market.catalogue.daily}
        return History(
            frozenset(d for d in found if d >= first and calendar.is_open(d)),
            holes(calendar, had, first, end),
        )


def _differing(market: MarketService, year: str, days: Mapping[str, set[str]], records: Records) -> set[str]:
    wanted = {f"market.{table}": [day for day in of if day[:4] == year] for table, of in days.items()}
    held = {
        name.split(".", 1)[1]: {day: str(version) for day, version in of.items()}
        for name, of in market.lake.holdings(wanted).items()
    }
    of_year = {table: {d: r for d, r in of.items() if d[:4] == year} for table, of in records.items()}
    return differing(market.catalogue, held, of_year)


def _records(market: MarketService, end: str) -> Records:
    found: dict[str, dict[str, Recorded]] = {table: {} for table in judged_tables(market.catalogue)}
    names = {f"market.{table}": table for table in found}
    for table, day, rows, digest, inputs, seen_count, status in market.provenance.contents(list(names)):
        if day < end:
            version = Version(rows, digest) if rows else ABSENT
            found[names[table]][day] = Recorded(str(version), inputs, status, seen_count)
    return found

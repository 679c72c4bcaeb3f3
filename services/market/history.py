"""The days before the gap window: compared with their records whenever anything may have changed.

A pass asks which snapshot of each table is current, which costs the same after one year as after ten. Only
if one is new, or the last comparison is some minutes old, are versions and records of all days compared. That
reads no data where the versions are cached; others are computed, for a bounded time per pass. A file keeps
the result for the next process, which looks whether the records and the data files are still there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import orjson

from domain.market.history import History, Recorded, Records, differing, earlier, holes, judged_tables
from domain.shared.table import ABSENT, Version
from resources.lake.file_index import write_cache

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

    file: Path | None = None
    """Keeps the last comparison for other processes."""
    clock: Callable[[], float] = time.time
    marks: list[Any] = field(default_factory=list)
    began: float = 0.0
    stamp: str = ""
    """Of the records that were compared."""
    years: dict[str, set[str]] = field(default_factory=dict)
    """By year, the days that differ, as far as years were compared."""
    history: History = field(default_factory=History)
    ended: bool = False
    turn: Lock = field(default_factory=Lock, repr=False)
    """The sensors of a process share it."""

    def until(self, market: MarketService, calendar: TradingCalendar, end: date, patience: float) -> History:
        """Return what is known of the days before `end`, compared for at most `patience` seconds.

        If another pass compares for longer than that, it is what was known before.
        """
        if not self.turn.acquire(timeout=-1 if patience == math.inf else patience):
            return self.history
        try:
            return self._until(market, calendar, end, patience)
        finally:
            self.turn.release()

    def _until(self, market: MarketService, calendar: TradingCalendar, end: date, patience: float) -> History:
        tables = [f"market.{t}" for t in (*judged_tables(market.catalogue), market.catalogue.calendar.name)]
        marks = [*market.lake.marks(tables), *sorted(calendar.years), str(end), str(market.rules.first_day)]
        now = self.clock()
        if marks != self.marks or not 0 <= now - self.began <= COMPARED_AGAIN:
            # Read before the records: what is recorded meanwhile is compared again.
            self.marks, self.stamp = marks, market.provenance.stamp(tables)
            self.began, self.years, self.ended = now, {}, False
            self._load(market, tables)
        if not self.ended:
            self.history = self._compare(market, calendar, end, now + patience)
            if self.ended and self.file is not None:
                write_cache(self.file, orjson.dumps(self._kept(self.history)))
        return self.history

    def _kept(self, history: History) -> dict[str, Any]:
        return {
            "marks": self.marks,
            "stamp": self.stamp,
            "began": self.began,
            "differing": sorted(history.differing),
            "holes": dict(history.holes),
            "earlier": dict(history.earlier),
        }

    def _load(self, market: MarketService, tables: Sequence[str]) -> None:
        """Take what another process found, if nothing changed since."""
        try:
            kept = orjson.loads(self.file.read_bytes()) if self.file else {}
            known = (kept.get("marks"), kept.get("stamp")) == (self.marks, self.stamp)
            if not known or not 0 <= self.began - kept["began"] <= COMPARED_AGAIN:
                return
            holes, earlier = (
                {table: tuple(map(date.fromisoformat, days)) for table, days in kept[name].items()}
                for name in ("holes", "earlier")
            )
            history = History(frozenset(map(date.fromisoformat, kept["differing"])), holes, earlier)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return  # a file that cannot be read is written anew
        if not market.lake.has_lost_files(tables):
            self.history, self.began, self.ended = history, kept["began"], True

    def _compare(self, market: MarketService, calendar: TradingCalendar, end: date, latest: float) -> History:
        records = _records(market, str(end))
        days = {
            table: {d for d in market.lake.partitions(f"market.{table}") if d < str(end)} | of.keys()
            for table, of in records.items()
        }
        ended = True
        for year in sorted({day[:4] for of in days.values() for day in of}, reverse=True):
            if year not in self.years and self.clock() > latest:
                ended = False
                break
            if year not in self.years:
                self.years[year] = _differing(market, year, days, records)
        self.ended, first = ended, market.rules.first_day
        found = {date.fromisoformat(day) for of in self.years.values() for day in of}
        had = {e.name: set(map(date.fromisoformat, days[e.name])) for e in market.catalogue.daily}
        return History(
            frozenset(d for d in found if d >= first and calendar.is_open(d)),
            holes(calendar, had, first, end),
            earlier(calendar, had, first, end),
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

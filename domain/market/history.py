"""Which days before the gap window are not as they were recorded, and which were never fetched.

A first sight of thousands of days from records and versions alone; the plan judges what is found here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from domain.market.catalogue import Catalogue
from domain.market.completeness import EXPLAINED_AFTER
from domain.market.derived import ADJUSTED_FROM
from domain.market.tables import ADJUSTED_DAILY, COVERAGE
from domain.market.trading import TradingCalendar
from domain.shared.table import ABSENT

NOTHING = str(ABSENT)
UNSETTLED = ("partial", "unjudged")
"""The statuses of a fetched day that the plan has not done with until it was fetched often enough."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The record of one day of a table, as far as it is compared."""

    version: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    status: str | None = None
    seen_count: int = 1


Records = Mapping[str, Mapping[str, Recorded]]
"""By table and day."""


@dataclass(frozen=True)
class History:
    """The days before the gap window that need a look."""

    differing: frozenset[date] = frozenset()
    """Days of which any table is not what was recorded, or not made from what is there."""
    holes: Mapping[str, tuple[date, ...]] = field(default_factory=dict)
    """By fetched table, the open days that were never fetched, since the first that was."""
    earlier: Mapping[str, tuple[date, ...]] = field(default_factory=dict)
    """By fetched table, the open days before its first, since the first day of any table."""

    @property
    def never_fetched(self) -> set[date]:
        return {day for days in self.holes.values() for day in days}


def judged_tables(catalogue: Catalogue) -> tuple[str, ...]:
    """The tables that a day is judged by."""
    return (*(e.name for e in catalogue.daily), ADJUSTED_DAILY.table, COVERAGE.table)


def differing(catalogue: Catalogue, held: Mapping[str, Mapping[str, str]], records: Records) -> set[str]:
    """Return the days whose version differs from its record, or that are not settled, by sets of days."""
    found: set[str] = set()
    for table in judged_tables(catalogue):
        known = {day: one.version for day, one in records[table].items()}
        found.update(day for day, _ in held[table].items() ^ known.items())
        found.update(
            day
            for day, one in records[table].items()
            if one.status in UNSETTLED and one.seen_count < EXPLAINED_AFTER
        )
    return found | _outdated(catalogue, records)


def _outdated(catalogue: Catalogue, records: Records) -> set[str]:
    """Return the days of which a derived table was never made, or was made from other versions."""
    made, covered = records[ADJUSTED_DAILY.table], records[COVERAGE.table]
    fetched = {e.name: {d: r.version for d, r in records[e.name].items()} for e in catalogue.daily}
    pairs = [{d for d, v in fetched[name].items() if v != NOTHING} for name in ADJUSTED_FROM]
    found = set.intersection(*pairs) - made.keys()
    found |= set().union(*(days.keys() for days in fetched.values())) - covered.keys()
    for day, one in made.items():
        if any(one.inputs.get(name) != fetched[name].get(day, NOTHING) for name in ADJUSTED_FROM):
            found.add(day)
    for day, one in covered.items():
        # What follows the version is how it was judged, by a stock list that grows. A table that is new has
        # no version of the day.
        before = {name: text.split(" ", 1)[0] for name, text in one.inputs.items()}
        if any(before.get(name, NOTHING) != of.get(day, NOTHING) for name, of in fetched.items()):
            found.add(day)
    return found


def holes(
    calendar: TradingCalendar, days: Mapping[str, set[date]], first: date, end: date
) -> dict[str, tuple[date, ...]]:
    """Return by table the open days before `end` without any of `days`, which were fetched or are there."""
    found = {
        table: tuple(d for d in calendar.between(max(first, min(had)), end) if d < end and d not in had)
        for table, had in days.items()
        if had
    }
    return {table: missing for table, missing in found.items() if missing}


def earlier(
    calendar: TradingCalendar, days: Mapping[str, set[date]], first: date, end: date
) -> dict[str, tuple[date, ...]]:
    """Return by table the open days before its first of `days`, since the first day of any table."""
    firsts = {table: min(had, default=end) for table, had in days.items()}
    begin = max(first, min(firsts.values(), default=end))
    found = {t: tuple(d for d in calendar.between(begin, own) if d < own) for t, own in firsts.items()}
    return {table: missing for table, missing in found.items() if missing}

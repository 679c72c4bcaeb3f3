"""Feeds: what applications report to hold, as scopes whose version changes with their rows.

A poll only notes versions; what is due is every scope whose reported version was not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from domain.carbon.jobs import FEED_ENTRIES, FEED_FACTORS, FEED_UNITS

FeedKind = Literal["units", "factors", "entries"]
"""In the order of their import: entries are checked against units."""
FEED_TABLES: Mapping[FeedKind, str] = {
    "units": FEED_UNITS,
    "factors": FEED_FACTORS,
    "entries": FEED_ENTRIES,
}
"""By kind, the first word of the keys of its work."""
Origin = Literal["api", "manual"]
"""api     activity data that another system counts
manual  entries that people edit in an application; it calculates them by itself, and we never write there
"""
ORIGINS: tuple[Origin, ...] = get_args(Origin)


@dataclass(frozen=True, order=True)
class FeedChange:
    """The newest reported version of the entries or factors of one type, year and institution, or of its
    units."""

    source: str
    institution: str
    data_entry_type: str
    """Empty of units."""
    year: int
    version: str
    kind: FeedKind = "entries"

    @property
    def scope(self) -> str:
        return f"{self.source}|{self.institution}"

    @property
    def table(self) -> str:
        return FEED_TABLES[self.kind]

    @property
    def partition(self) -> str:
        return f"{self.data_entry_type}|{self.year}" if self.data_entry_type else str(self.year)

    @property
    def key(self) -> str:
        return f"{self.table}:{self.partition}"

    @property
    def name(self) -> str:
        """What is read of it, in words."""
        of_type = f" of {self.data_entry_type}" if self.data_entry_type else ""
        return f"{self.source} {self.kind}{of_type} {self.year}"


@dataclass(frozen=True)
class FeedRead:
    """What was read of a partition last: by scope, the version, and the entries that were refused.

    Of units and factors none is refused: all rows are good, or nothing is taken.
    """

    versions: Mapping[str, str]
    refused: Mapping[str, Mapping[str, Any]]


NEVER_READ = FeedRead({}, {})


def changes_to_read(changes: Iterable[FeedChange], read: FeedRead, units: str) -> list[FeedChange]:
    """Return the changes that were not read, or had entries refused under other units of the year."""
    return [
        one
        for one in sorted(changes)
        if read.versions.get(one.scope) != one.version
        or read.refused.get(one.scope, {}).get("units", units) != units
    ]

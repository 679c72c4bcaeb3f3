"""Feeds: what applications report to hold, as scopes whose version changes with their entries.

A poll only notes versions; what is due is every scope whose reported version was not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

Origin = Literal["api", "manual"]
"""api     activity data that another system counts
manual  entries that people edit in an application; it calculates them by itself, and we never write there
"""
ORIGINS: tuple[Origin, ...] = get_args(Origin)


@dataclass(frozen=True, order=True)
class FeedChange:
    """The newest reported version of the entries of one type, year and institution."""

    source: str
    institution: str
    data_entry_type: str
    year: int
    version: str

    @property
    def scope(self) -> str:
        return f"{self.source}|{self.institution}"

    @property
    def partition(self) -> str:
        return f"{self.data_entry_type}|{self.year}"


@dataclass(frozen=True)
class FeedRead:
    """What was read of a partition last: by scope, the version, and the entries that were refused."""

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

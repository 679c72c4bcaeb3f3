"""What applications beside us say they hold: places, each with a version that changes with its entries.

Hearing of a change only makes us read sooner: what is due is what was heard and has not been read.
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
class Heard:
    """The entries of one type, year and institution, at their origin."""

    source: str
    institution: str
    data_entry_type: str
    year: int
    version: str
    """Their origin's word for what they are now."""

    @property
    def place(self) -> str:
        return f"{self.source}|{self.institution}"

    @property
    def partition(self) -> str:
        return f"{self.data_entry_type}|{self.year}"


@dataclass(frozen=True)
class Pulled:
    """What was read of a partition last: by place, the version, and what of it was refused."""

    versions: Mapping[str, str]
    refused: Mapping[str, Mapping[str, Any]]


NEVER = Pulled({}, {})


def unpulled(heard: Iterable[Heard], pulled: Pulled, units: str) -> list[Heard]:
    """Places whose entries are not what was read of them, or of which some were refused while the units of
    the year were others."""
    return [
        one
        for one in sorted(heard)
        if pulled.versions.get(one.place) != one.version
        or pulled.refused.get(one.place, {}).get("units", units) != units
    ]

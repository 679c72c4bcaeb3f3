"""When a file in the drop folder has come to rest, by looks alone: no clock but our own is asked.

A copy that stalls looks whole, and the times of a file server may be of any age. So a file counts as at
rest once looks some time apart saw the same of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote, unquote_to_bytes

from domain.carbon.jobs import DROPPED

SETTLED = 20.0
"""Seconds between the first look that saw a file as it is and the one that has it taken."""
FOLDERS = ("units", "factors", "data")
"""What files are put into, in the order in which their files are taken: data are checked against units."""
LATE = 3600.0
"""Seconds for which a taken file is watched: whoever still wrote to it is not done before."""


@dataclass(frozen=True)
class Seen:
    """What a look saw of a file, and when a look saw that first."""

    stamp: str
    since: float


def looked(lying: Mapping[str, str], before: Mapping[str, Seen], now: float) -> dict[str, Seen]:
    """What is known after a look. A clock that was put back begins the waiting anew."""
    found = {}
    for place, stamp in lying.items():
        known = before.get(place)
        same = known is not None and known.stamp == stamp and known.since <= now
        found[place] = known if known is not None and same else Seen(stamp, now)
    return found


def at_rest(seen: Mapping[str, Seen], now: float) -> list[str]:
    return [place for place, one in seen.items() if now - one.since >= SETTLED]


def turn(place: str, stamp: str) -> tuple[int, int, str]:
    """What was written last comes last: of files that say the same, the newer is to count."""
    return FOLDERS.index(PurePosixPath(place).parts[0]), int(stamp.split(":")[1]), place


def key_of(place: str) -> str:
    """A name may hold bytes that are no text; a key may not."""
    return f"{DROPPED}:{shown(place)}"


def shown(place: str) -> str:
    return "".join(c if c.isprintable() and c != "%" else quote(os.fsencode(c), safe="") for c in place)


def place_of(key: str) -> str:
    return path_of(key.split(":", 1)[1])


def path_of(shown: str) -> str:
    return os.fsdecode(unquote_to_bytes(shown))

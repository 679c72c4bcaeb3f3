"""When a file in the drop folder has come to rest, by looks alone: no clock but our own is asked.

A copy that stalls looks whole, and the times of a file server may be of any age. So a file counts as at
rest once looks some time apart saw the same of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from domain.carbon.jobs import DROPPED

SETTLED = 20.0
"""Seconds between the first look that saw a file as it is and the one that has it taken."""
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


def watched(
    seen: Mapping[str, Seen], before: Mapping[str, Seen], watching: Mapping[str, Seen], now: float
) -> dict[str, Seen]:
    """What has gone from its place, as it was, and since when: for a while it may still change."""
    still = {place: one for place, one in watching.items() if 0 <= now - one.since < LATE}
    gone = {place: Seen(one.stamp, now) for place, one in before.items() if place not in seen}
    return {place: one for place, one in {**still, **gone}.items() if place not in seen}


def key_of(place: str) -> str:
    """A name may hold bytes that are no text; a key may not."""
    return f"{DROPPED}:{shown(place)}"


def shown(place: str) -> str:
    return "".join(c if c.isprintable() and c != "%" else quote(os.fsencode(c), safe="") for c in place)


def place_of(key: str) -> str:
    return os.fsdecode(unquote_to_bytes(key.split(":", 1)[1]))

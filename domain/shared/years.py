"""The years there may be data of."""

from __future__ import annotations

from domain.shared.clock import PLATFORM_ZONE, Clock

YEARS = range(1990, 2051)
"""A year outside is a mistake."""


def this_year(clock: Clock) -> int:
    return clock().astimezone(PLATFORM_ZONE).year

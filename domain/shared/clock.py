"""Time as an argument. A `Clock` is any callable that gives an aware UTC moment.

There are two clocks. The *business clock* says what day it is for the plan, the publication hours,
`not_before` and everything a person reads; `PERENNIAL_NOW` can stop it (sandbox only). The *machine
clock* is always real: leases, heartbeats and rate windows live on it, so a stopped business clock
never makes a live worker look dead.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

Clock = Callable[[], datetime]
PLATFORM_ZONE = ZoneInfo("Asia/Shanghai")
"""The zone of the upkeep's hour, and of a moment that names none."""


def machine_clock() -> datetime:
    return datetime.now(UTC)


def stopped_at(moment: datetime) -> Clock:
    """A clock that always shows `moment`, which has a time zone."""
    fixed = moment.astimezone(UTC)
    return lambda: fixed

"""Time as an argument."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from domain.shared.clock import machine_clock, stopped_at

EVENING = datetime(2026, 11, 17, 18, 30, tzinfo=ZoneInfo("Asia/Shanghai"))


def test_the_machine_s_clock_shows_now_in_utc() -> None:
    before, shown, after = datetime.now(UTC), machine_clock(), datetime.now(UTC)
    assert before <= shown <= after
    assert shown.tzinfo is UTC


def test_a_stopped_clock_shows_the_same_moment_for_ever() -> None:
    clock = stopped_at(EVENING)
    assert clock() == clock() == EVENING


def test_a_stopped_clock_speaks_utc() -> None:
    shown = stopped_at(EVENING)()
    assert shown.utcoffset() == timedelta(0)
    assert shown.isoformat() == "2026-11-17T10:30:00+00:00"


def test_a_moment_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="2026-11-17T18:30:00 has no time zone"):
        stopped_at(EVENING.replace(tzinfo=None))

"""Time as an argument."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from domain.shared.clock import stopped_at

EVENING = datetime(2026, 11, 17, 18, 30, tzinfo=ZoneInfo("Asia/Shanghai"))


def test_a_stopped_clock_speaks_utc() -> None:
    shown = stopped_at(EVENING)()
    assert shown.utcoffset() == timedelta(0)
    assert shown.isoformat() == "2026-11-17T10:30:00+00:00"


def test_a_moment_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="2026-11-17T18:30:00 has no time zone"):
        stopped_at(EVENING.replace(tzinfo=None))

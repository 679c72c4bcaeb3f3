"""How fresh a source is: the order of the rules, their boundaries, and time that does not count."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.market.freshness import due_age, freshness
from domain.market.trading import TradingCalendar
from domain.shared.health import SourceFreshness
from tests.unit.domain.market.world import SHANGHAI, shanghai_time, trading_calendar
from tests.unit.domain.rows import source

CALENDAR = trading_calendar()
NO_CALENDAR = TradingCalendar.of((), ())
INSTANT = timedelta(microseconds=1)


def status_and_reason(
    source: SourceFreshness, now: datetime, calendar: TradingCalendar = CALENDAR
) -> tuple[str, str]:
    fresh = freshness(source, calendar, now)
    return fresh.status, fresh.reason


NOW = shanghai_time("2026-11-19 12:00")
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (source(), ("never_ingested", "no successful fetch yet")),
        (source(None, NOW - HOUR, "HTTP 502"), ("error", "HTTP 502")),
        (source(NOW - HOUR, NOW - HOUR + INSTANT, "HTTP 502"), ("error", "HTTP 502")),
        (source(None, NOW), ("error", "the last attempt failed")),
        (source(NOW - HOUR, NOW - 2 * HOUR, "HTTP 502"), ("healthy", "")),
    ],
)
def test_freshness__last_success_and_failure__decide(
    source: SourceFreshness, expected: tuple[str, str]
) -> None:
    assert status_and_reason(source, NOW) == expected


@pytest.mark.parametrize(
    ("age", "status"),
    [
        (timedelta(0), "healthy"),
        (timedelta(hours=48) - INSTANT, "healthy"),
        (timedelta(hours=48), "stale"),
        (timedelta(days=7), "stale"),
        (timedelta(days=7) + INSTANT, "error"),
    ],
)
def test_freshness__age__decides_the_status(age: timedelta, status: str) -> None:
    always_open = TradingCalendar.of([NOW.date() - timedelta(days=n) for n in range(30)], [2026])
    fresh = freshness(source(NOW - age), always_open, NOW)
    assert fresh.status == status
    assert (fresh.reason == "silent") == (status == "error")


@pytest.mark.parametrize(
    ("success", "now", "status"),
    [
        ("2026-11-13 18:40", "2026-11-16 18:30", "healthy"),  # over a weekend: one day less ten minutes
        ("2026-11-13 18:40", "2026-11-17 18:39", "healthy"),
        ("2026-11-13 18:40", "2026-11-17 18:40", "stale"),  # 5:20 of Friday, Monday, 18:40 of Tuesday
        ("2026-09-30 18:40", "2026-10-09 18:30", "healthy"),  # a week of holidays and the day after
        ("2026-09-30 18:40", "2026-10-12 18:39", "healthy"),
        ("2026-09-30 18:40", "2026-10-12 18:40", "stale"),
        ("2026-12-31 18:40", "2027-01-03 18:40", "healthy"),  # over the turn of the year
    ],
)
def test_freshness__weekend_or_holiday__makes_nothing_stale(success: str, now: str, status: str) -> None:
    assert status_and_reason(source(shanghai_time(success)), shanghai_time(now))[0] == status


def test_freshness__silent_for_seven_open_days__is_an_error() -> None:
    silent = source(shanghai_time("2026-11-02 18:40"))
    assert status_and_reason(silent, shanghai_time("2026-11-10 18:40"))[0] == "stale"
    assert status_and_reason(silent, shanghai_time("2026-11-11 18:40"))[0] == "stale"  # exactly seven
    assert status_and_reason(silent, shanghai_time("2026-11-11 18:41")) == ("error", "silent")


def test_due_age__no_calendar__counts_weekdays() -> None:
    success = shanghai_time("2026-11-13 12:00")
    assert due_age(NO_CALENDAR, success, shanghai_time("2026-11-16 12:00")) == timedelta(days=1)


@given(
    st.datetimes(datetime(2026, 9, 1), datetime(2026, 12, 31)),  # noqa: DTZ001
    st.integers(0, 60 * 24 * 20),
)
@settings(max_examples=25, deadline=None)
def test_due_age__any_time__is_the_sum_of_open_minutes(since: datetime, minutes: int) -> None:
    since = since.replace(second=0, microsecond=0, tzinfo=UTC)
    counted = sum(
        CALENDAR.is_open((since + timedelta(minutes=n)).astimezone(SHANGHAI).date()) for n in range(minutes)
    )
    age = due_age(CALENDAR, since, since + timedelta(minutes=minutes))
    if counted <= 7 * 24 * 60:
        assert age == timedelta(minutes=counted)
    else:
        assert age > timedelta(days=7), "beyond silence it need not be counted to the end"

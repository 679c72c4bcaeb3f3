"""The trading calendar as a value, and hours on Shanghai's clocks."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.market.trading import TradingCalendar, due_at, newest_published, published_at, shanghai
from tests.unit.domain.market.world import CATALOGUE, TUESDAY, days, shanghai_time, trading_calendar

HALF_PAST_SIX = time(18, 30)
DATES = st.dates(date(2026, 1, 1), date(2026, 3, 31))


def calendar(*texts: str) -> TradingCalendar:
    return TradingCalendar.of(days(*texts), [2026])


@given(st.lists(DATES), DATES, DATES, st.integers(0, 5))
def test_calendar__any_days__answers_as_a_plain_list(
    opened: list[date], first: date, last: date, count: int
) -> None:
    held = TradingCalendar.of(opened, [2026])
    plain = sorted(set(opened))
    assert held.between(first, last) == tuple(d for d in plain if first <= d <= last)
    assert held.newest(count, last) == tuple([d for d in plain if d <= last][-count:] if count else [])
    assert held.is_open(first) == (first in plain)


@pytest.mark.parametrize(
    ("now", "newest"),
    [
        ("2026-11-17 18:29", "2026-11-16"),
        ("2026-11-17 18:30", "2026-11-17"),
        ("2026-11-17 18:31", "2026-11-17"),
        ("2026-11-14 18:30", "2026-11-13"),  # Saturday
        ("2026-11-16 00:00", "2026-11-13"),  # Monday before the look
        ("2026-10-08 18:30", "2026-09-30"),  # the last day of a holiday
        ("2026-10-09 18:29", "2026-09-30"),  # the first day after it
        ("2026-10-09 18:30", "2026-10-09"),
        ("2027-01-03 18:30", "2026-12-31"),
    ],
)
def test_newest_published__moment__is_the_last_due_open_day(now: str, newest: str) -> None:
    assert newest_published(trading_calendar(), shanghai_time(now), HALF_PAST_SIX) == date.fromisoformat(
        newest
    )


def test_newest_published__before_the_first_day__is_none() -> None:
    assert newest_published(calendar("2026-11-17"), shanghai_time("2026-11-17 18:29"), HALF_PAST_SIX) is None


def test_shanghai__any_zone__is_its_day_there() -> None:
    late_utc = datetime(2026, 11, 16, 23, 0, tzinfo=UTC)  # already Tuesday there
    assert shanghai(late_utc).date() == TUESDAY
    assert (
        newest_published(trading_calendar(), late_utc + timedelta(hours=11, minutes=30), HALF_PAST_SIX)
        == TUESDAY
    )


@pytest.mark.parametrize(
    ("table", "daily_at", "hour"),
    [
        ("normalized_daily", "18:30", "18:30"),
        ("normalized_daily", "09:00", "16:00"),
        ("normalized_daily_basic", "16:30", "17:00"),
        ("normalized_adj_factor", "09:30", "09:30"),
    ],
)
def test_due_at__published_late__is_the_later_of_pass_and_publication(
    table: str, daily_at: str, hour: str
) -> None:
    endpoint = CATALOGUE.by_name(table)
    assert due_at(endpoint, TUESDAY, time.fromisoformat(daily_at)) == shanghai_time(f"2026-11-17 {hour}")


def test_published_at__endpoint__is_its_hour() -> None:
    endpoint = CATALOGUE.by_name("normalized_daily_basic")
    assert published_at(endpoint, TUESDAY) == shanghai_time("2026-11-17 17:00")

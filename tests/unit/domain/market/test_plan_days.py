"""Which days a pass judges, and from which minute on they are due."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.market.plan import judge_day, window, years_wanted
from domain.market.trading import TradingCalendar, newest_published
from domain.shared.table import ALL
from tests.unit.domain.market.world import (
    CALENDAR,
    CATALOGUE,
    CLOSED,
    DAILY,
    JUDGED,
    LISTED,
    RULES,
    SHANGHAI,
    STOCKS,
    TUESDAY,
    Market,
    days,
    shanghai_time,
    trading_calendar,
)


def window_of(now: str, **settings: Any) -> list[str]:
    market = Market(shanghai_time(now), rules=replace(RULES, **settings))
    return [str(day) for day in market.window]


def test_window__weekday__is_the_last_seven_days_up_to_today() -> None:
    assert window_of("2026-11-17 20:00") == [
        "2026-11-10", "2026-11-11", "2026-11-12", "2026-11-13", "2026-11-16", "2026-11-17",
    ]  # fmt: skip


@pytest.mark.parametrize(("minute", "due"), [("18:29", False), ("18:30", True), ("18:31", True)])
def test_plan__today__is_due_from_half_past_six(minute: str, due: bool) -> None:
    market = Market(shanghai_time(f"2026-11-17 {minute}"))
    assert {market.verdict(name, TUESDAY).state for name in DAILY} == {"missing" if due else "waiting"}


def test_plan__earlier_daily_hour__waits_for_publication() -> None:
    market = Market(shanghai_time("2026-11-17 16:30"), rules=replace(RULES, daily_at=time(9)))
    states = {name: market.verdict(name, TUESDAY).state for name in DAILY}
    assert states == {
        "normalized_daily": "missing",
        "normalized_adj_factor": "missing",
        "normalized_daily_basic": "waiting",
        "suspensions": "missing",
    }


def test_window__after_a_long_holiday__has_the_days_before_it() -> None:
    assert window_of("2026-10-09 12:00") == ["2026-09-28", "2026-09-29", "2026-09-30", "2026-10-09"]
    assert window_of("2026-10-09 18:30") == ["2026-09-29", "2026-09-30", "2026-10-09"]


def test_plan__gap_before_a_fortnight_of_holidays__is_due_after_it() -> None:
    fortnight = {date(2026, 9, 30) + timedelta(days=n) for n in range(1, 15)}
    market = Market.healthy(
        "2026-09-29 20:00", calendar=trading_calendar(closed=CLOSED | fortnight)
    )  # and then the machine was off
    assert {str(d) for d in market.at("2026-10-14 12:00").window} == {
        "2026-09-28",
        "2026-09-29",
        "2026-09-30",
    }
    assert f"normalized_daily:{date(2026, 9, 30)}" in market.at("2026-10-14 12:00").due()


def test_plan__no_calendar__only_references_are_due() -> None:
    market = Market(shanghai_time("2026-11-17 20:00"), calendar=TradingCalendar.of((), ()))
    assert {(v.table, v.partition, v.state) for v in market.plan.verdicts} == {
        (CALENDAR, "2026", "missing"),
        (STOCKS, "ALL", "missing"),
    }


@pytest.mark.parametrize(
    ("now", "window_days", "years"),
    [
        ("2026-11-30 23:59", 7, (2026,)),
        ("2026-12-01 00:00", 7, (2026, 2027)),
        ("2027-01-01 00:00", 7, (2026, 2027)),
        ("2027-01-31 23:59", 7, (2026, 2027)),
        ("2027-02-01 00:00", 7, (2027,)),
        ("2027-02-10 12:00", 60, (2026, 2027)),
        ("2027-02-10 12:00", 41, (2026, 2027)),  # back to New Year's Eve
        ("2027-02-10 12:00", 40, (2027,)),
        ("2027-12-01 00:00", 366, (2026, 2027, 2028)),
        ("2027-01-01 00:00", 366, (2025, 2026, 2027)),
        ("2027-01-31 12:00", 0, (2026, 2027)),
    ],
)
def test_plan__window__wants_the_calendar_of_each_year_it_reaches(
    now: str, window_days: int, years: tuple[int, ...]
) -> None:
    market = Market(shanghai_time(now), rules=replace(RULES, window_days=window_days))
    assert years_wanted(market.now.astimezone(UTC), market.rules) == years
    assert market.due() >= {f"{CALENDAR}:{year}" for year in years}


def test_window__new_warehouse_with_a_wide_window__reaches_last_year() -> None:
    calendar = trading_calendar()
    this_year = [d for d in calendar.open_days if d.year == 2027]
    rules = replace(RULES, window_days=60)
    market = Market(
        shanghai_time("2027-02-10 12:00"), rules=rules, calendar=TradingCalendar.of(this_year, (2027,))
    )
    assert f"{CALENDAR}:2026" in market.due()
    assert replace(market, calendar=calendar).window[0] == date(2026, 12, 14)


def test_judge_day__outside_the_window__has_the_same_rules() -> None:
    """A backfill judges days far outside the window by the same rules."""
    market = Market(shanghai_time("2026-11-17 20:00"))
    market.put(STOCKS, ALL, LISTED)
    [day] = days("2025-06-03")
    verdicts = judge_day(CATALOGUE, day, market.observed, market.now, RULES)
    assert {(v.table, v.state) for v in verdicts} == {(name, "missing") for name in DAILY}


def test_judge_day__no_stock_list__only_what_is_not_counted_by_it_is_due() -> None:
    """The old list counts, however old it is; without any, an answer could not be judged."""
    market = Market.healthy("2026-11-16 20:00").at("2026-11-17 20:00")
    assert f"{STOCKS}:{ALL}" in market.due()
    assert {market.verdict(name, TUESDAY).reason_code for name in DAILY} == {"missing"}
    market.listed = None
    market.drop(STOCKS, ALL)
    verdicts = {name: market.verdict(name, TUESDAY) for name in DAILY}
    assert {name: (v.state, v.reason_code, v.due) for name, v in verdicts.items()} == {
        name: ("waiting", "input_missing", False) if name in JUDGED else ("missing", "missing", True)
        for name in DAILY
    }
    assert {verdicts[name].reason for name in JUDGED} == {"waiting for stock_basic"}
    assert market.verdict(JUDGED[0], "2026-11-12").state == "healthy"


@given(
    closed=st.frozensets(st.dates(date(2026, 9, 1), date(2026, 12, 31)), max_size=60),
    now=st.datetimes(
        min_value=shanghai_time("2026-09-01 00:00").replace(tzinfo=None),
        max_value=shanghai_time("2026-12-31 00:00").replace(tzinfo=None),
    ),
    window_days=st.integers(0, 14),
    limit=st.integers(1, 5),
)
@settings(max_examples=60, deadline=None)
def test_window__any_calendar__has_no_hole_and_the_days_of_a_pass(
    closed: frozenset[date], now: datetime, window_days: int, limit: int
) -> None:
    calendar = trading_calendar(closed=closed)
    market = Market(now.replace(tzinfo=SHANGHAI), calendar=calendar)
    rules = replace(RULES, window_days=window_days, limit=limit)
    seen = window(market.observed, market.now, rules)
    assert seen == calendar.between(seen[0], now.date())
    assert all(
        now.date() - timedelta(days=window_days) > d
        for d in set(calendar.open_days) - set(seen)
        if d <= now.date()
    )
    newest = newest_published(calendar, market.now, rules.daily_at)
    assert newest is not None
    assert len([d for d in seen if d <= newest]) >= limit

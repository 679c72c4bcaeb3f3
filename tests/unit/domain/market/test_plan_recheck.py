"""Asking once more: references every day, the newest days for revisions, and revisions to be kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from domain.market.plan import FILL, REFRESH
from domain.shared.table import ALL
from tests.unit.domain.market.world import (
    CALENDAR,
    REVISED,
    RULES,
    STOCKS,
    TUESDAY,
    Market,
    days,
    reference_keys,
    shanghai_time,
)

PRICES = "normalized_daily"


def rechecked(market: Market) -> set[str]:
    return {v.partition for v in market.plan.due if v.reason_code == "recheck"}


# Revisions by the source


def test_plan__daily_hour__two_days_before_are_rechecked() -> None:
    market = Market.healthy("2026-11-16 20:00")
    assert not rechecked(market.at("2026-11-17 18:29"))
    assert rechecked(market.at("2026-11-17 18:30")) == {"2026-11-13", "2026-11-16"}


def test_plan__fetched_at_the_daily_hour__is_not_rechecked() -> None:
    market = Market.healthy("2026-11-17 18:30")
    assert not rechecked(market.at("2026-11-17 18:31"))


def test_plan__following_days__fetch_each_day_three_times() -> None:
    market = Market.healthy("2026-11-16 20:00")
    for evening in ("2026-11-17", "2026-11-18", "2026-11-19", "2026-11-20"):
        market = market.at(f"{evening} 20:00")
        market.settle()
    assert market.states[PRICES, "2026-11-17"].detail["fetches"] == 3


def test_plan__after_a_holiday__days_before_it_are_rechecked() -> None:
    market = Market.healthy("2026-09-30 20:00")
    assert rechecked(market.at("2026-10-09 18:30")) == {"2026-09-29", "2026-09-30"}


def test_how_many_days_are_rechecked_is_a_setting() -> None:
    market = Market.healthy("2026-11-16 20:00", rules=replace(RULES, recheck_days=1))
    assert not rechecked(market.at("2026-11-17 18:30"))
    wide = replace(market, rules=replace(RULES, recheck_days=5))
    assert len(rechecked(wide.at("2026-11-17 18:30"))) == 4


def test_plan__recheck_and_gap__gap_has_priority() -> None:
    market = Market.healthy("2026-11-16 20:00").at("2026-11-17 18:30")
    recheck, gap = market.verdict(PRICES, "2026-11-16"), market.verdict(PRICES, TUESDAY)
    assert (recheck.state, gap.state) == ("stale", "missing")
    assert recheck.request.priority < gap.request.priority


# Keeping what the source changed


def test_plan__pending_revision__is_due_until_kept() -> None:
    market = Market.healthy("2026-11-17 20:00")
    market.revised.add(TUESDAY)
    assert market.due() == {f"{REVISED}:{TUESDAY}"}
    market.settle()
    assert not market.due()


@pytest.mark.parametrize("day", [TUESDAY, date(2026, 3, 2)])
def test_plan__day_being_filled__revision_waits(day: date) -> None:
    market = Market.healthy("2026-11-17 20:00")
    market.revised.add(day)
    market.busy.add(day)
    assert not market.due()


def test_plan__second_revision_of_a_day__has_another_fingerprint() -> None:
    """Else the second would be lost where keeping the first has failed for good."""
    market = Market.healthy("2026-11-17 20:00")
    market.revised.add(TUESDAY)
    first = market.verdict(REVISED, TUESDAY)
    market.put(PRICES, TUESDAY, 1_000, words="revised")
    assert market.verdict(REVISED, TUESDAY).fingerprint != first.fingerprint


# References


def test_plan__references__are_due_once_a_day_from_nine() -> None:
    market = Market.healthy("2026-11-16 20:00")
    assert not market.at("2026-11-17 08:59").due()
    morning = market.at("2026-11-17 09:00")
    assert morning.due() == reference_keys(morning.now)
    morning.settle()
    assert not morning.at("2026-11-17 18:29").due()


def test_plan__reference_fetched_at_nine__is_healthy_until_the_next_nine() -> None:
    market = Market.healthy("2026-11-17 09:00")
    assert market.verdict(STOCKS, ALL).state == "healthy"
    assert market.at("2026-11-18 08:59").verdict(STOCKS, ALL).state == "healthy"
    assert market.at("2026-11-18 09:00").verdict(STOCKS, ALL).reason_code == "daily_refresh"


def test_plan__references__have_a_kind_of_their_own_and_priority() -> None:
    market = Market(shanghai_time("2026-11-17 20:00"))
    reference, gap = market.verdict(STOCKS, ALL).request, market.verdict(PRICES, TUESDAY).request
    assert (reference.kind, gap.kind) == (REFRESH, FILL)
    assert reference.priority > gap.priority


def test_plan__year_without_calendar__its_days_wait_for_it() -> None:
    market = Market.healthy("2026-12-31 20:00")
    without = replace(
        market.at("2027-01-05 20:00"),
        calendar=replace(
            market.calendar,
            open_days=market.calendar.between(date(2025, 1, 1), date(2026, 12, 31)),
            years=frozenset({2025, 2026}),
        ),
        states={k: c for k, c in market.states.items() if k != (CALENDAR, "2027")},
    )
    assert without.verdict(CALENDAR, "2027").due
    assert max(without.window) == date(2026, 12, 31)
    [new_day] = days("2027-01-05")
    assert new_day in market.at("2027-01-05 20:00").window
    assert new_day - timedelta(days=1) in market.at("2027-01-05 20:00").window

"""The watchdog's one line: near, whole, and no source failing. Otherwise it barks, and says why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pytest

from domain.market.trading import TradingCalendar
from domain.market.watchdog import Watch, watch
from domain.shared.state import PartitionState
from tests.unit.domain.market.world import (
    CATALOGUE,
    DAILY,
    TUESDAY,
    Market,
    corrupt,
    shanghai_time,
    unavailable,
)
from tests.unit.domain.rows import Source

PRICES = "normalized_daily"
EVENING = "2026-11-17 20:00"


def watched(market: Market, *sources: Source) -> Watch:
    return watch(CATALOGUE, market.observed, sources, market.now, market.rules)


@pytest.fixture
def market() -> Market:
    return Market.healthy(EVENING)


def test_a_healthy_market_is_one_line(market: Market) -> None:
    seen = watched(market, Source(market.now))
    assert (seen.ok, seen.latest_day, seen.problems) == (True, TUESDAY, ())
    assert seen.line == "OK market: newest day 2026-11-17 is complete, all sources answered"


def test_an_alert_is_one_line_too_and_names_everything(market: Market) -> None:
    market.drop(PRICES, TUESDAY)
    failing = Source(None, market.now, "daily failed after 3 retries: HTTP 502\ntry later")
    seen = watched(market, failing)
    assert not seen.ok
    assert seen.line == (
        "ALERT market: normalized_daily of 2026-11-17 is missing (0 of 1,000 rows); "
        "tushare.daily: daily failed after 3 retries: HTTP 502"
    )


# Near


def behind(market: Market, newest_held: str) -> Market:
    states = {k: c for k, c in market.states.items() if k[0] not in DAILY or k[1] <= newest_held}
    return replace(market, states=states)


@pytest.mark.parametrize(
    ("newest", "ok"),
    [("2026-11-17", True), ("2026-11-12", True), ("2026-11-11", False), ("2026-11-10", False)],
)
def test_the_newest_day_may_be_three_trading_days_behind_and_no_more(
    market: Market, newest: str, ok: bool
) -> None:
    seen = watched(behind(market, newest))
    assert (seen.ok, seen.latest_day) == (ok, date.fromisoformat(newest))


@pytest.mark.parametrize("now", ["2026-10-08 20:00", "2026-10-09 18:29"])
def test_a_week_of_holidays_puts_nothing_behind(now: str) -> None:
    assert watched(Market.healthy("2026-09-30 20:00").at(now)).ok


def test_today_counts_from_the_daily_pass_on() -> None:
    market = Market.healthy("2026-11-11 20:00")
    assert watched(market.at("2026-11-17 18:29")).ok, "three days behind Monday"
    assert not watched(market.at("2026-11-17 18:30")).ok, "four behind Tuesday"


def test_an_empty_warehouse_is_an_alert() -> None:
    seen = watched(Market(shanghai_time(EVENING)))
    assert seen.problems == ("no day in the gap window has data",)
    assert seen.latest_day is None


def test_a_missing_calendar_is_an_alert(market: Market) -> None:
    without = replace(market, calendar=TradingCalendar.of(market.calendar.open_days, [2025]))
    assert watched(without).problems == ("the trading calendar of 2026 is missing",)


def test_on_new_year_s_morning_the_new_year_s_calendar_is_asked_for() -> None:
    market = Market.healthy("2026-12-31 20:00")
    assert watched(market.at("2027-01-01 00:00")).ok
    last_year = replace(market, calendar=replace(market.calendar, years=frozenset({2026})))
    assert not watched(last_year.at("2027-01-01 00:00")).ok
    assert watched(last_year.at("2026-12-31 23:59")).ok


# Whole


@pytest.mark.parametrize("table", DAILY)
def test_a_missing_table_of_the_newest_day_is_an_alert(market: Market, table: str) -> None:
    market.forget(table, TUESDAY)
    assert watched(market).problems[0].startswith(f"{table} of 2026-11-17 is missing")


@pytest.mark.parametrize(
    ("rows", "seen", "word"),
    [(990, 1, ""), (989, 1, "partial"), (900, 1, "partial"), (899, 1, "incomplete"), (989, 2, "")],
)
def test_a_completeness_warning_is_an_alert_until_it_is_explained(
    market: Market, rows: int, seen: int, word: str
) -> None:
    market.put(PRICES, TUESDAY, rows, seen=seen)
    expected = (f"{PRICES} of 2026-11-17 is {word} ({rows:,} of 1,000 rows)",) if word else ()
    assert watched(market).problems == expected


@pytest.mark.parametrize(("hurt", "word"), [(corrupt, "corrupt"), (unavailable, "unavailable")])
def test_an_unreadable_day_is_the_newest_day_all_the_same(
    market: Market, hurt: Callable[[PartitionState], PartitionState], word: str
) -> None:
    for table in DAILY:
        market.states[table, str(TUESDAY)] = hurt(market.states[table, str(TUESDAY)])
    seen = watched(market)
    assert seen.latest_day == TUESDAY
    assert [p.split()[0] for p in seen.problems] == list(DAILY)
    assert all(f"is {word}" in p for p in seen.problems)


def test_only_the_newest_day_must_be_complete(market: Market) -> None:
    market.drop(PRICES, "2026-11-16")
    assert watched(market).ok


def test_without_a_stock_list_nobody_can_say_that_a_day_is_complete(market: Market) -> None:
    seen = watched(replace(market, listed=None))
    assert not seen.ok
    assert f"{PRICES} of 2026-11-17 is unjudged (1,000 rows)" in seen.problems


def test_what_was_fetched_before_its_hour_alarms_nobody() -> None:
    """Somebody materialised the factors at noon: today is not due, yesterday is complete."""
    market = Market.healthy("2026-11-16 20:00").at("2026-11-17 12:00")
    market.put("normalized_adj_factor", TUESDAY, 1_000)
    seen = watched(market)
    assert (seen.ok, seen.latest_day) == (True, date(2026, 11, 16))


def test_a_table_published_after_the_daily_pass_is_not_missed_before() -> None:
    late = replace(CATALOGUE.daily[2], published=shanghai_time("2026-11-17 21:00").time())
    catalogue = replace(CATALOGUE, daily=(*CATALOGUE.daily[:2], late, CATALOGUE.daily[3]))
    market = Market.healthy(EVENING, catalogue=catalogue)
    assert (late.name, str(TUESDAY)) not in market.states
    assert watch(catalogue, market.observed, (), market.now, market.rules).ok
    later = market.at("2026-11-17 21:00")
    assert not watch(catalogue, later.observed, (), later.now, later.rules).ok


# Sources


@pytest.mark.parametrize(
    ("success", "failure", "ok"),
    [
        ("2026-11-17 18:31", None, True),
        ("2026-11-17 18:31", "2026-11-17 18:31", True),
        ("2026-11-17 18:31", "2026-11-17 18:32", False),
        (None, "2026-11-17 18:31", False),
        (None, None, False),  # never asked
        ("2026-11-13 18:31", None, False),  # stale
        ("2026-10-09 18:31", None, False),  # silent
    ],
)
def test_a_source_that_failed_last_or_fell_silent_is_an_alert(
    market: Market, success: str | None, failure: str | None, ok: bool
) -> None:
    last_success, last_failure = (shanghai_time(text) if text else None for text in (success, failure))
    assert watched(market, Source(last_success, last_failure, "HTTP 502")).ok == ok

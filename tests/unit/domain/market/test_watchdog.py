"""The one line of the watchdog: the newest day is near and complete, and no source fails; else why not."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from domain.market.trading import TradingCalendar
from domain.market.watchdog import MarketWatch, watch
from domain.shared.health import SourceFreshness
from domain.shared.table import ABSENT, ALL, Version
from tests.unit.domain.market.world import CATALOGUE, DAILY, STOCKS, TUESDAY, Market, content, shanghai_time
from tests.unit.domain.rows import source

PRICES = "normalized_daily"
ROWS = "1,000 rows expected"
EVENING = "2026-11-17 20:00"


def watched(market: Market, *sources: SourceFreshness) -> MarketWatch:
    return watch(market.catalogue, market.plan, market.observed, sources, market.now, market.rules)


@pytest.fixture
def market() -> Market:
    return Market.healthy(EVENING)


def test_watch__healthy_market__is_one_line(market: Market) -> None:
    seen = watched(market, source(market.now))
    assert (seen.ok, seen.latest_day, seen.problems) == (True, TUESDAY, ())
    assert seen.line == (
        "OK market: newest day 2026-11-17 is complete, 0 trading days behind; all sources answered"
    )


def test_watch__several_problems__one_line_names_them_all(market: Market) -> None:
    market.drop(PRICES, TUESDAY)
    seen = watched(market, source(None, market.now, "daily failed after 3 retries: HTTP 502\ntry later"))
    assert not seen.ok
    assert seen.line == (
        "ALERT market: normalized_daily of 2026-11-17 is missing "
        "(its 1,000 rows are gone, 1,000 rows expected); "
        "tushare.daily: daily failed after 3 retries: HTTP 502"
    )


@pytest.mark.parametrize(
    ("healthy_at", "now", "ok"),
    [
        ("2026-11-16 20:00", "2026-11-17 18:29", True),  # not due yet
        ("2026-11-16 20:00", "2026-11-17 19:29", True),  # being fetched
        ("2026-11-16 20:00", "2026-11-17 19:30", False),  # nobody has fetched it all day
        ("2026-11-13 20:00", "2026-11-17 09:00", False),  # nor Monday
        ("2026-09-30 20:00", "2026-10-08 20:00", True),  # a week of holidays
    ],
)
def test_watch__day_not_fetched__is_late_an_hour_after_the_daily_pass(
    healthy_at: str, now: str, ok: bool
) -> None:
    seen = watched(Market.healthy(healthy_at).at(now))
    assert (seen.ok, seen.latest_day) == (ok, date.fromisoformat(healthy_at[:10]))


def test_watch__empty_warehouse__is_an_alert() -> None:
    seen = watched(Market(shanghai_time(EVENING)))
    assert seen.problems == ("no day in the gap window has data",)
    assert seen.latest_day is None


def test_watch__calendar_of_this_year_missing__is_an_alert() -> None:
    market = Market.healthy("2026-12-31 20:00")
    assert watched(market.at("2027-01-01 00:00")).ok
    calendar = TradingCalendar.of(market.calendar.open_days, [2026])
    without = replace(market, calendar=calendar)
    assert watched(without.at("2026-12-31 23:59")).ok
    assert watched(without.at("2027-01-01 00:00")).problems == ("the trading calendar of 2027 is missing",)


@pytest.mark.parametrize("table", DAILY)
@pytest.mark.parametrize(
    ("version", "status"),
    [
        (ABSENT, "missing"),
        (Version(0, "", corrupt=True), "corrupt"),
        (Version(0, "", unavailable="cannot be read"), "unavailable"),
    ],
)
def test_watch__table_of_newest_day_is_not_there__is_an_alert(
    market: Market, table: str, version: Version, status: str
) -> None:
    market.change(table, TUESDAY, version=version, recorded=None)
    seen = watched(market)
    assert seen.latest_day == TUESDAY
    assert seen.problems[0].startswith(f"{table} of 2026-11-17 is {status} (")


@pytest.mark.parametrize(
    ("rows", "seen", "status"),
    [(990, 1, ""), (989, 1, "partial"), (900, 1, "partial"), (899, 1, "incomplete"), (989, 2, "")],
)
def test_watch__incomplete_day__is_an_alert_until_it_is_explained(
    market: Market, rows: int, seen: int, status: str
) -> None:
    market.put(PRICES, TUESDAY, rows, seen=seen)
    for verdict in market.plan.due:
        if verdict.table not in DAILY:
            market.work(verdict)
    problems = watched(market).problems
    assert [p.split(" (")[0] for p in problems] == ([f"{PRICES} of 2026-11-17 is {status}"] if status else [])


@pytest.mark.parametrize(
    ("day", "earlier", "problem"),
    [
        (
            "2026-11-16",
            (),
            f"{PRICES} of 2026-11-16 is missing (its 1,000 rows are gone, 1,000 rows expected)",
        ),
        (
            "2026-10-12",
            (),
            f"{PRICES} of 2026-10-12 is missing (its 1,000 rows are gone, 1,000 rows expected)",
        ),
        ("2026-10-12", ("2026-10-09",), f"{PRICES} is missing on 2 days, 2026-10-09 to 2026-10-12"),
    ],
)
def test_watch__recorded_day_of_any_age_gone__is_an_alert(
    day: str, earlier: tuple[str, ...], problem: str
) -> None:
    market = Market.healthy("2026-10-13 20:00").at(EVENING)
    market.settle()
    for one in (day, *earlier):
        market.drop(PRICES, one)
    assert watched(market).problems == (problem,)


def test_watch__a_person_called_the_day_off__is_no_alert(market: Market) -> None:
    market.drop(PRICES, TUESDAY)
    called_off = {v.key for v in market.plan.due}
    args = (market.catalogue, market.plan, market.observed, (), market.now, market.rules)
    assert not watch(*args).ok
    assert watch(*args, explained=called_off).ok


def test_watch__no_stock_list__is_an_alert(market: Market) -> None:
    market.drop(STOCKS, ALL)
    assert watched(market).problems[0].startswith(f"{STOCKS} of ALL is missing (")


def test_watch__fetched_before_its_hour__is_no_alert() -> None:
    """Somebody materialised the factors at noon: today is not due, yesterday is complete."""
    market = Market.healthy("2026-11-16 20:00").at("2026-11-17 12:00")
    market.states["normalized_adj_factor", str(TUESDAY)] = replace(
        market.states["normalized_adj_factor", "2026-11-16"], version=content(1_000)
    )
    seen = watched(market)
    assert (seen.ok, seen.latest_day) == (True, date(2026, 11, 16))


def test_watch__table_published_late__is_due_from_then() -> None:
    late = replace(CATALOGUE.daily[2], published=shanghai_time("2026-11-17 21:00").time())
    catalogue = replace(CATALOGUE, daily=(*CATALOGUE.daily[:2], late, CATALOGUE.daily[3]))
    market = Market.healthy(EVENING, catalogue=catalogue)
    assert (late.name, str(TUESDAY)) not in market.states
    assert watched(market.at("2026-11-17 22:59")).ok
    assert not watched(market.at("2026-11-17 23:00")).ok


@pytest.mark.parametrize(
    ("success", "failure", "ok"),
    [
        ("2026-11-17 18:31", None, True),
        ("2026-11-17 18:31", "2026-11-17 18:31", True),
        ("2026-11-17 18:31", "2026-11-17 18:32", False),
        (None, None, False),  # never asked
        ("2026-11-13 18:31", None, False),  # stale
        ("2026-10-09 18:31", None, False),  # silent
    ],
)
def test_watch__source_not_fresh__is_an_alert(
    market: Market, success: str | None, failure: str | None, ok: bool
) -> None:
    last_success, last_failure = (shanghai_time(text) if text else None for text in (success, failure))
    assert watched(market, source(last_success, last_failure, "HTTP 502")).ok == ok

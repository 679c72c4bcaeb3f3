"""The verdict on a partition of the market: its state, whether it is due, and what its fingerprint covers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from domain.market.derived import coverage_inputs, coverage_status
from domain.market.plan import FILL, REFRESH, is_gap
from domain.shared.table import ABSENT, ALL, Version
from domain.shared.verdict import Verdict
from tests.unit.domain.market.world import (
    ADJUSTED,
    CALENDAR,
    CATALOGUE,
    COVERED,
    DAILY,
    JUDGED,
    REVISED,
    RULES,
    STOCKS,
    TUESDAY,
    Market,
    content,
    reference_keys,
    shanghai_time,
    state,
    unavailable,
)

EVENING = "2026-11-17 20:00"
PRICES, FACTORS = "normalized_daily", "normalized_adj_factor"
CORRUPT = Version(0, "", corrupt=True)
Change = Callable[[Market], None]


@pytest.fixture
def market() -> Market:
    return Market.healthy(EVENING)


def judged(market: Market, table: str = PRICES, day: date | str = TUESDAY) -> tuple[str, str]:
    verdict = market.verdict(table, day)
    return verdict.state, verdict.reason_code


def change(**records: Any) -> Change:
    return lambda market: market.change(PRICES, TUESDAY, **records)


def put(rows: int, **records: Any) -> Change:
    return lambda market: market.put(PRICES, TUESDAY, rows, **records)


DIFFERENCES: dict[str, tuple[Change, str, str]] = {
    "rows gone": (change(version=ABSENT), "missing", "missing"),
    "never fetched": (lambda market: market.forget(PRICES, TUESDAY), "missing", "missing"),
    "empty": (change(version=ABSENT, recorded=ABSENT), "incomplete", "incomplete"),
    "corrupt": (change(version=CORRUPT), "corrupt", "corrupt"),
    "corrupt, no record": (change(version=CORRUPT, recorded=None), "corrupt", "corrupt"),
    "edited": (change(version=content(1_000, "edited")), "changed", "changed"),
    "some rows gone": (change(version=content(900)), "changed", "changed"),
    "many rows gone": (change(version=content(899)), "incomplete", "incomplete"),
    "no record": (change(recorded=None), "changed", "unrecorded"),
    "list has grown": (put(800), "incomplete", "incomplete"),
    "partial": (put(950, checked=shanghai_time("2026-11-17 19:00")), "incomplete", "partial"),
    "recheck": (change(checked_at=shanghai_time("2026-11-17 18:00")), "stale", "recheck"),
}
of_each_difference = pytest.mark.parametrize("name", DIFFERENCES)


@of_each_difference
def test_plan__fetched_day_differs__is_due_until_it_is_fetched(market: Market, name: str) -> None:
    differ, expected, reason_code = DIFFERENCES[name]
    differ(market)
    verdict = market.verdict(PRICES, TUESDAY)
    assert (verdict.due, verdict.state, verdict.reason_code) == (True, expected, reason_code)
    assert is_gap(verdict) == (reason_code != "recheck")
    market.settle()
    assert judged(market) == ("healthy", "")


@pytest.mark.parametrize("recorded", [True, False])
def test_plan__partition_unavailable__is_neither_healthy_nor_due(market: Market, recorded: bool) -> None:
    place = PRICES, str(TUESDAY)
    market.states[place] = unavailable(market.states[place])
    if not recorded:
        market.change(*place, recorded=None)
    assert judged(market) == ("unavailable", "lake_unavailable")
    assert market.due() == set(), "no other day, and nothing of this one"
    assert judged(market, FACTORS) == ("healthy", "")


@pytest.mark.parametrize(("reference", "waiting"), [(("suspensions", str(TUESDAY)), 2), ((STOCKS, ALL), 3)])
def test_plan__reference_unavailable__day_waits(
    market: Market, reference: tuple[str, str], waiting: int
) -> None:
    """Judged by nothing a thin day would be called whole, and an answer of the source would be refused."""
    market.put(PRICES, TUESDAY, 950)
    market.drop("normalized_daily_basic", TUESDAY)
    market.states[reference] = unavailable(market.states[reference])
    assert [judged(market, t) for t in JUDGED].count(("waiting", "input_missing")) == waiting
    assert not any(market.verdict(t, TUESDAY).due for t in JUDGED)
    assert market.verdict(*reference).state == "unavailable"


def test_plan__table_that_may_be_empty__must_have_been_fetched(market: Market) -> None:
    assert judged(market, "suspensions") == ("healthy", "")
    market.forget("suspensions", TUESDAY)
    assert judged(market, "suspensions") == ("missing", "missing")


def test_plan__nothing_listed__empty_day_is_healthy() -> None:
    market = Market.healthy(EVENING, listed=0)
    market.put(PRICES, TUESDAY, 0)
    market.settle()
    assert judged(market) == ("healthy", "")


def test_plan__no_stock_list__only_missing_days_are_gaps(market: Market) -> None:
    blind = replace(market, listed=None)
    assert {v.state for v in blind.plan.verdicts if v.table in DAILY} == {"healthy"}
    blind.forget(PRICES, TUESDAY)
    assert judged(blind) == ("missing", "missing")


@pytest.mark.parametrize(
    ("rows", "expected"), [(899, "incomplete"), (900, "waiting"), (989, "waiting"), (990, "healthy")]
)
def test_plan__fetched_rows__decide_the_state(market: Market, rows: int, expected: str) -> None:
    market.put(PRICES, TUESDAY, rows)
    assert judged(market)[0] == expected


@pytest.mark.parametrize(("fetches", "hours"), [(1, 1), (2, 6), (3, 24), (4, 24), (9, 24)])
def test_plan__partial_day__is_fetched_again_after_1_6_and_24_hours(fetches: int, hours: int) -> None:
    market = Market.healthy("2026-11-13 20:00")
    [friday] = market.window[-1:]
    market.put(PRICES, friday, 950, fetches=fetches)
    again = market.now + timedelta(hours=hours)
    for second, expected in ((-1, "waiting"), (0, "incomplete"), (1, "incomplete")):
        later = replace(market, now=again + timedelta(seconds=second))
        assert judged(later, day=friday) == (expected, "partial")


def test_plan__partial_day_confirmed_by_the_source__is_healthy(market: Market) -> None:
    market.source[PRICES, str(TUESDAY)] = 950
    market.forget(PRICES, TUESDAY)
    market.settle()
    assert judged(market) == ("waiting", "partial")
    later = market.at("2026-11-17 21:00")
    later.settle()
    assert judged(later) == ("healthy", "source_says_so")
    assert not later.due()


# Derived tables


@pytest.mark.parametrize("table", [ADJUSTED, COVERED])
@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ({"version": ABSENT}, ("missing", "missing")),
        ({"version": content(7)}, ("changed", "changed")),
        ({"version": CORRUPT}, ("corrupt", "corrupt")),
        ({"recorded": None}, ("changed", "unrecorded")),
        ({"inputs": {"normalized_old": "1:1"}}, ("stale", "inputs_changed")),
    ],
)
def test_plan__derived_partition_differs__is_due(
    market: Market, table: str, records: dict[str, Any], expected: tuple[str, str]
) -> None:
    market.change(table, TUESDAY, **records)
    assert judged(market, table) == expected
    market.settle()
    assert judged(market, table) == ("healthy", "")


@pytest.mark.parametrize("table", [PRICES, FACTORS])
def test_plan__input_revised__derived_tables_are_stale(market: Market, table: str) -> None:
    market.put(table, TUESDAY, 1_000, words="revised")
    for derived in (ADJUSTED, COVERED):
        assert judged(market, derived) == ("stale", "inputs_changed")
        assert table in market.verdict(derived, TUESDAY).reason


@pytest.mark.parametrize("table", [PRICES, FACTORS])
def test_plan__input_unavailable__derived_tables_wait(market: Market, table: str) -> None:
    place = table, str(TUESDAY)
    market.states[place] = unavailable(market.states[place])
    for derived in (ADJUSTED, COVERED):
        assert judged(market, derived) == ("waiting", "input_missing")
    assert not market.due()
    assert coverage_inputs(CATALOGUE, market.observed, str(TUESDAY)) is None


@pytest.mark.parametrize("table", [ADJUSTED, COVERED])
def test_plan__derived_partition_unavailable__is_not_due(market: Market, table: str) -> None:
    place = table, str(TUESDAY)
    market.states[place] = unavailable(market.states[place])
    market.put("suspensions", TUESDAY, 3)
    assert judged(market, table) == ("unavailable", "lake_unavailable")
    assert f"{table}:{TUESDAY}" not in market.due()


@pytest.mark.parametrize(
    ("rows", "seen", "expected", "status"),
    [
        (1_000, 1, 1_000, "complete"),
        (990, 1, 1_000, "complete"),
        (989, 1, 1_000, "partial"),
        (989, 2, 1_000, "explained"),
        (900, 3, 1_000, "explained"),
        (899, 3, 1_000, "incomplete"),
        (0, 1, 1_000, "missing"),
        (0, 1, 0, "complete"),
        (1_000, 1, None, "unjudged"),
    ],
)
def test_coverage_status__rows_and_expected__decide(
    market: Market, rows: int, seen: int, expected: int | None, status: str
) -> None:
    assert coverage_status(CATALOGUE.by_name(PRICES), state(rows, market.now, seen=seen), expected) == status


def test_coverage_status__table_may_be_empty__needs_a_record(market: Market) -> None:
    suspensions, empty, three = CATALOGUE.by_name("suspensions"), state(0, market.now), state(3, market.now)
    assert coverage_status(suspensions, empty, None) == "asked"
    assert coverage_status(suspensions, three, None) == "complete"
    assert coverage_status(suspensions, replace(three, version=ABSENT), None) == "missing"
    assert coverage_status(suspensions, replace(empty, recorded=None), None) == "missing"


# Rechecks, revisions, references


def rechecked(market: Market) -> set[str]:
    return {v.partition for v in market.plan.due if v.reason_code == "recheck"}


@pytest.mark.parametrize(
    ("fetched", "now", "recheck_days", "days"),
    [
        ("2026-11-16 20:00", "2026-11-17 18:29", 3, set()),
        ("2026-11-16 20:00", "2026-11-17 18:30", 3, {"2026-11-13", "2026-11-16"}),
        ("2026-11-17 18:30", "2026-11-17 18:31", 3, set()),
        ("2026-09-30 20:00", "2026-10-09 18:30", 3, {"2026-09-29", "2026-09-30"}),  # after a holiday
        ("2026-11-16 20:00", "2026-11-17 18:30", 1, set()),
        ("2026-11-16 20:00", "2026-11-17 18:30", 2, {"2026-11-16"}),
    ],
)
def test_plan__daily_hour__newest_days_are_rechecked(
    fetched: str, now: str, recheck_days: int, days: set[str]
) -> None:
    market = Market.healthy(fetched, rules=replace(RULES, recheck_days=recheck_days))
    assert rechecked(market.at(now)) == days


def test_plan__following_days__fetch_each_day_three_times() -> None:
    market = Market.healthy("2026-11-16 20:00")
    for evening in ("2026-11-17", "2026-11-18", "2026-11-19", "2026-11-20"):
        market = market.at(f"{evening} 20:00")
        market.settle()
    assert market.states[PRICES, "2026-11-17"].detail["fetches"] == 3


def test_plan__pending_revision__is_due_until_kept(market: Market) -> None:
    market.revised.add(TUESDAY)
    assert market.due() == {f"{REVISED}:{TUESDAY}"}
    assert judged(market, REVISED) == ("stale", "revised")
    market.settle()
    assert not market.due()


@pytest.mark.parametrize("day", [TUESDAY, date(2026, 3, 2)])
def test_plan__day_being_filled__revision_waits(market: Market, day: date) -> None:
    market.revised.add(day)
    market.busy.add(day)
    assert not market.due()


def test_plan__references__are_due_once_a_day_from_nine() -> None:
    market = Market.healthy("2026-11-16 20:00")
    assert not market.at("2026-11-17 08:59").due()
    morning = market.at("2026-11-17 09:00")
    assert morning.due() == reference_keys(morning.now)
    assert judged(morning, STOCKS, ALL) == ("stale", "daily_refresh")
    morning.settle()
    assert not morning.at("2026-11-17 18:29").due()
    assert not any(v.due for v in morning.at("2026-11-18 08:59").plan.verdicts if v.table == STOCKS)
    assert morning.at("2026-11-18 09:00").verdict(STOCKS, ALL).due


def test_plan__year_without_calendar__its_days_wait_for_it() -> None:
    now = "2027-01-05 20:00"
    market = Market.healthy("2026-12-31 20:00").at(now)
    old_days = market.calendar.between(date(2025, 1, 1), date(2026, 12, 31))
    calendar = replace(market.calendar, open_days=old_days, years=frozenset({2025, 2026}))
    without = replace(
        market, calendar=calendar, states={k: s for k, s in market.states.items() if k != (CALENDAR, "2027")}
    )
    assert without.verdict(CALENDAR, "2027").due
    assert max(without.window) == date(2026, 12, 31)
    assert set(market.window) > {date(2027, 1, 4), date(2027, 1, 5)}


# Requests and their fingerprints: the ledger tries again what it refuses when the fingerprint changes.


def request(market: Market, table: str = PRICES) -> Verdict:
    verdict = market.verdict(table, TUESDAY)
    assert verdict.due
    return verdict


def reconfigured(market: Market) -> Market:
    return replace(market, rules=replace(market.rules, configuration="another token"))


def test_request__any_verdict__has_kind_and_priority_of_its_urgency() -> None:
    """References first, then gaps, then what derives from them, then rechecks."""
    market = Market(shanghai_time(EVENING))
    market.settle()
    market.change(STOCKS, ALL, version=ABSENT)
    market.change(PRICES, TUESDAY, version=ABSENT)
    market.change(FACTORS, TUESDAY, checked_at=shanghai_time("2026-11-17 18:00"))
    places = ((STOCKS, ALL), (PRICES, TUESDAY), (COVERED, TUESDAY), (FACTORS, TUESDAY))
    requests = [market.verdict(*place).request for place in places]
    assert [r and r.kind for r in requests] == [REFRESH, FILL, FILL, FILL]
    assert [r and r.priority for r in requests] == [30, 20, 10, 0]
    assert not any(r and r.once for r in requests), "a day lost twice must be requested twice"


@of_each_difference
def test_fingerprint__nothing_changes__is_the_same(market: Market, name: str) -> None:
    DIFFERENCES[name][0](market)
    assert request(market).fingerprint == request(market.at("2026-11-17 20:05")).fingerprint


@of_each_difference
def test_fingerprint__setting_changes__is_another(market: Market, name: str) -> None:
    """Work that failed for good (a wrong token) is requested again when the setting changes."""
    DIFFERENCES[name][0](market)
    assert request(market).fingerprint != request(reconfigured(market)).fingerprint


def test_fingerprint__setting_changes__references_have_another() -> None:
    market = Market(shanghai_time(EVENING))
    for verdict in market.plan.due:
        other = reconfigured(market).verdict(verdict.table, verdict.partition)
        assert other.fingerprint != verdict.fingerprint


def test_fingerprint__each_difference__has_its_own(market: Market) -> None:
    found = set()
    for differ, _, _ in DIFFERENCES.values():
        other = replace(market, states=dict(market.states))
        differ(other)
        found.add(request(other).fingerprint)
    assert len(found) == len(DIFFERENCES)


def test_fingerprint__reference__changes_once_a_day() -> None:
    market = Market.healthy("2026-11-16 20:00")
    prints = [
        market.at(moment).verdict(STOCKS, ALL).fingerprint
        for moment in ("2026-11-17 09:00", "2026-11-17 23:00", "2026-11-18 08:59", "2026-11-18 09:00")
    ]
    assert prints[0] == prints[1] == prints[2] != prints[3]


@pytest.mark.parametrize("table", [ADJUSTED, COVERED, REVISED])
def test_fingerprint__derived_table__covers_its_inputs_and_no_setting(market: Market, table: str) -> None:
    """Else a second revision would be lost where keeping the first has failed for good."""
    market.put(PRICES, TUESDAY, 1_000, words="revised")
    market.revised.add(TUESDAY)
    first = request(market, table).fingerprint
    assert request(market.at("2026-11-17 20:05"), table).fingerprint == first
    assert request(reconfigured(market), table).fingerprint == first
    market.put(PRICES, TUESDAY, 1_000, words="revised again")
    assert request(market, table).fingerprint != first

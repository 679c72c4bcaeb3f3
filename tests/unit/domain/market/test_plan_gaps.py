"""Which verdict a market partition has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.market.plan import is_gap
from domain.shared.table import ABSENT, ALL, Version
from tests.unit.domain.market.world import (
    DAILY,
    JUDGED,
    STOCKS,
    TUESDAY,
    Market,
    content,
    shanghai_time,
    unavailable,
)

EVENING = "2026-11-17 20:00"
PRICES = "normalized_daily"


@pytest.fixture
def market() -> Market:
    return Market.healthy(EVENING)


def judged(market: Market, table: str = PRICES) -> tuple[str, str]:
    verdict = market.verdict(table, TUESDAY)
    return verdict.state, verdict.reason_code


@pytest.mark.parametrize(
    ("changed", "state", "reason"),
    [
        ({"version": ABSENT}, "missing", "missing"),
        ({"version": ABSENT, "recorded": ABSENT}, "incomplete", "incomplete"),
        ({"version": Version(0, "", corrupt=True)}, "corrupt", "corrupt"),
        ({"version": Version(0, "", corrupt=True), "recorded": None}, "corrupt", "corrupt"),
        ({"version": content(1_000, "edited")}, "changed", "changed"),
        ({"version": content(900)}, "changed", "changed"),
        ({"version": content(899)}, "incomplete", "incomplete"),
        ({"recorded": None}, "changed", "unrecorded"),
    ],
)
def test_plan__partition_differs_from_its_record__is_a_gap(
    market: Market, changed: dict[str, Any], state: str, reason: str
) -> None:
    market.change(PRICES, TUESDAY, **changed)
    assert judged(market) == (state, reason)
    assert is_gap(market.verdict(PRICES, TUESDAY))


@pytest.mark.parametrize("recorded", [True, False])
def test_plan__partition_unavailable__is_neither_healthy_nor_due(market: Market, recorded: bool) -> None:
    place = PRICES, str(TUESDAY)
    market.states[place] = unavailable(market.states[place])
    if not recorded:
        market.change(*place, recorded=None)
    assert judged(market) == ("unavailable", "lake_unavailable")
    assert market.due() == set(), "no other day, and nothing of this one"
    assert judged(market, "normalized_adj_factor") == ("healthy", "")


@pytest.mark.parametrize(("reference", "waiting"), [(("suspensions", str(TUESDAY)), 2), ((STOCKS, ALL), 3)])
def test_plan__reference_unavailable__day_waits(
    market: Market, reference: tuple[str, str], waiting: int
) -> None:
    """Judged by nothing a thin day would be called whole, and an answer of the source would be refused."""
    market.put(PRICES, TUESDAY, 950)
    market.drop("normalized_daily_basic", TUESDAY)
    market.states[reference] = unavailable(market.states[reference])
    verdicts = [market.verdict(t, TUESDAY) for t in JUDGED]
    assert sum((v.state, v.reason_code) == ("waiting", "input_missing") for v in verdicts) == waiting
    assert not any(v.due for v in verdicts)
    assert market.verdict(*reference).reason_code == "lake_unavailable"


def test_plan__table_that_may_be_empty__must_have_been_fetched(market: Market) -> None:
    assert judged(market, "suspensions") == ("healthy", "")
    market.forget("suspensions", TUESDAY)
    assert judged(market, "suspensions") == ("missing", "missing")


def test_plan__nothing_listed__empty_day_is_healthy() -> None:
    market = Market.healthy(EVENING, listed=0)
    market.put(PRICES, TUESDAY, 0)
    market.settle()
    assert judged(market) == ("healthy", "")


def test_plan__stock_list_grew__day_is_incomplete(market: Market) -> None:
    grown = replace(market, listed=1_200)
    assert judged(grown) == ("incomplete", "incomplete")


def test_plan__no_stock_list__only_missing_days_are_gaps(market: Market) -> None:
    blind = replace(market, listed=None)
    assert {v.state for v in blind.plan.verdicts if v.table in DAILY} == {"healthy"}
    blind.forget(PRICES, TUESDAY)
    assert judged(blind) == ("missing", "missing")


@pytest.mark.parametrize(
    ("rows", "state"), [(899, "incomplete"), (900, "waiting"), (989, "waiting"), (990, "healthy")]
)
def test_plan__fetched_rows__decide_the_state(market: Market, rows: int, state: str) -> None:
    market.put(PRICES, TUESDAY, rows)
    assert judged(market)[0] == state


# Partial days: asked for again after 1, 6 and 24 hours, then daily, until the source says the same twice.


@pytest.mark.parametrize(("fetches", "hours"), [(1, 1), (2, 6), (3, 24), (4, 24), (9, 24)])
def test_plan__partial_day__is_fetched_again_after_1_6_and_24_hours(fetches: int, hours: int) -> None:
    market = Market.healthy("2026-11-13 20:00")
    [friday] = market.window[-1:]
    market.put(PRICES, friday, 950, fetches=fetches)
    due = shanghai_time("2026-11-13 20:00").timestamp() + hours * 3600
    for second, state in ((-1, "waiting"), (0, "incomplete"), (1, "incomplete")):
        now = market.now.fromtimestamp(due + second, tz=market.now.tzinfo)
        verdict = replace(market, now=now).verdict(PRICES, friday)
        assert (verdict.state, verdict.reason_code) == (state, "partial")


def test_plan__partial_day_confirmed_by_the_source__is_explained(market: Market) -> None:
    market.source[PRICES, str(TUESDAY)] = 950
    market.forget(PRICES, TUESDAY)
    market.settle()
    assert judged(market) == ("waiting", "partial")
    later = market.at("2026-11-17 21:00")
    assert judged(later) == ("incomplete", "partial")
    later.settle()
    assert judged(later) == ("healthy", "source_says_so")
    assert not later.due()

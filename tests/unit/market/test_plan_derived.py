"""What is computed from a day is due exactly when its inputs are not those it was made from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.market.derived import coverage_inputs, coverage_status
from domain.shared.table import ABSENT, Version
from tests.unit.market.world import (
    ADJUSTED,
    CATALOGUE,
    COVERED,
    DAILY,
    JUDGED,
    TUESDAY,
    UNREAD,
    Market,
    content,
    corrupt,
    state,
    unavailable,
)

PRICES, FACTORS = "normalized_daily", "normalized_adj_factor"


@pytest.fixture
def market() -> Market:
    return Market.healthy("2026-11-17 20:00")


def derived(market: Market) -> set[str]:
    return {v.table for v in market.plan.due if v.state == "derive" and v.partition == str(TUESDAY)}


def test_nothing_is_derived_again_when_no_input_changed(market: Market) -> None:
    assert not derived(market)
    assert market.verdict(ADJUSTED, TUESDAY).why == "1,000 rows, inputs unchanged"


@pytest.mark.parametrize("table", [PRICES, FACTORS])
def test_a_revised_input_makes_adjusted_prices_due(market: Market, table: str) -> None:
    market.put(table, TUESDAY, 1_000, words="revised")
    verdict = market.verdict(ADJUSTED, TUESDAY)
    assert (verdict.state, verdict.reason_code) == ("derive", "inputs_changed")
    assert verdict.why == f"out of date: {table} is not what it was made from"


def test_adjusted_prices_do_not_depend_on_other_tables(market: Market) -> None:
    market.put("normalized_daily_basic", TUESDAY, 1_000, words="revised")
    market.put("suspensions", TUESDAY, 3)
    assert derived(market) == {COVERED}


def test_the_same_content_fetched_again_derives_nothing(market: Market) -> None:
    before = market.states[PRICES, str(TUESDAY)]
    market.put(PRICES, TUESDAY, before.version.rows, seen=2, fetches=2)
    assert not derived(market)


@pytest.mark.parametrize("table", [PRICES, FACTORS])
@pytest.mark.parametrize("how", ["gone", "damaged", "edited", "unrecorded"])
def test_adjusted_prices_wait_for_inputs_that_are_themselves_a_gap(
    market: Market, table: str, how: str
) -> None:
    held = market.states[table, str(TUESDAY)]
    broken = {
        "gone": replace(held, version=ABSENT),
        "damaged": corrupt(held),
        "edited": replace(held, version=content(1_000, "edited")),
        "unrecorded": replace(held, recorded=None),
    }
    market.states[table, str(TUESDAY)] = broken[how]
    market.drop(ADJUSTED, TUESDAY)
    assert ADJUSTED not in {v.table for v in market.plan.verdicts if v.partition == str(TUESDAY)}


@pytest.mark.parametrize("table", [PRICES, FACTORS])
def test_what_is_derived_waits_for_what_cannot_be_read_and_says_so(market: Market, table: str) -> None:
    place = table, str(TUESDAY)
    market.states[place] = unavailable(market.states[place])
    for derived_table in (ADJUSTED, COVERED):
        verdict = market.verdict(derived_table, TUESDAY)
        assert (verdict.state, verdict.reason_code) == ("unknown", "input_missing")
        assert verdict.why == f"it waits for {table}: {UNREAD}"
    assert not market.due()
    assert coverage_inputs(CATALOGUE, market.observed, str(TUESDAY)) is None, (
        "asked for it is not made either"
    )


@pytest.mark.parametrize("table", [ADJUSTED, COVERED])
def test_a_derived_partition_that_cannot_be_read_is_left_alone(market: Market, table: str) -> None:
    place = table, str(TUESDAY)
    market.states[place] = unavailable(market.states[place])
    market.put("suspensions", TUESDAY, 3)
    assert market.verdict(table, TUESDAY).reason_code == "lake_unreadable"
    assert f"{table}:{TUESDAY}" not in market.due()


@pytest.mark.parametrize("table", [ADJUSTED, COVERED])
def test_a_derived_partition_that_was_touched_is_made_again(market: Market, table: str) -> None:
    for breaking, reason in (
        ({"version": ABSENT}, "missing"),
        ({"version": content(7)}, "changed"),
        ({"version": Version(0, "", corrupt=True)}, "damaged"),
        ({"recorded": None}, "unrecorded"),
    ):
        broken = replace(market, states=dict(market.states))
        broken.change(table, TUESDAY, **breaking)
        verdict = broken.verdict(table, TUESDAY)
        assert (verdict.state, verdict.reason_code) == ("derive", reason)
        broken.settle()
        assert not derived(broken)


@pytest.mark.parametrize("table", DAILY)
def test_coverage_speaks_of_every_table(market: Market, table: str) -> None:
    market.put(table, TUESDAY, 999, words="revised")
    assert COVERED in derived(market)


def test_coverage_tells_a_missing_table_at_once(market: Market) -> None:
    market.drop("normalized_daily_basic", TUESDAY)
    assert derived(market) == {COVERED}


def test_coverage_is_made_again_when_the_expectation_changes(market: Market) -> None:
    assert derived(replace(market, listed=1_001)) == {COVERED}


def test_coverage_is_made_again_when_a_partial_day_is_explained(market: Market) -> None:
    market.put(PRICES, TUESDAY, 950)
    market.settle()
    market.change(PRICES, TUESDAY, seen_count=2)
    assert derived(market) == {COVERED}


def test_coverage_is_not_made_of_a_day_nobody_ever_fetched() -> None:
    market = Market.healthy("2026-11-16 20:00").at("2026-11-17 20:00")
    assert not derived(market)


def test_one_fetched_table_is_enough_for_coverage() -> None:
    market = Market.healthy("2026-11-16 20:00").at("2026-11-17 20:00")
    market.put("suspensions", TUESDAY, 0)
    assert derived(market) == {COVERED}


def test_nothing_is_derived_while_a_fill_of_the_day_is_under_way(market: Market) -> None:
    market.put(PRICES, TUESDAY, 1_000, words="revised")
    market.busy.add(TUESDAY)
    assert not {v.table for v in market.plan.verdicts if v.partition == str(TUESDAY)} & {ADJUSTED, COVERED}


def test_a_day_fetched_before_its_hour_is_derived_at_once() -> None:
    market = Market.healthy("2026-11-16 20:00").at("2026-11-17 17:00")
    for table in (PRICES, FACTORS):
        market.put(table, TUESDAY, 1_000)
    assert derived(market) == {ADJUSTED, COVERED}


def test_inputs_recorded_under_other_names_count_as_changed(market: Market) -> None:
    inputs = dict(market.states[ADJUSTED, str(TUESDAY)].inputs)
    market.change(ADJUSTED, TUESDAY, inputs={**inputs, "normalized_old": "1:1"})
    assert market.verdict(ADJUSTED, TUESDAY).why == "out of date: normalized_old is not what it was made from"


# The word of the coverage table


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
def test_the_word_of_a_table_of_stocks(rows: int, seen: int, expected: int | None, status: str) -> None:
    prices = CATALOGUE.by_name(PRICES)
    held = state(rows, Market.healthy("2026-11-17 20:00").now, seen=seen)
    assert coverage_status(prices, held, expected) == status


def test_the_word_of_a_table_that_may_be_empty(market: Market) -> None:
    suspensions = CATALOGUE.by_name("suspensions")
    assert coverage_status(suspensions, state(0, market.now), None) == "asked"
    assert coverage_status(suspensions, state(3, market.now), None) == "complete"
    assert coverage_status(suspensions, replace(state(3, market.now), version=ABSENT), None) == "missing"
    assert coverage_status(suspensions, replace(state(0, market.now), recorded=None), None) == "missing"


@pytest.mark.parametrize("table", JUDGED)
def test_the_word_of_a_damaged_day(market: Market, table: str) -> None:
    assert coverage_status(CATALOGUE.by_name(table), corrupt(state(1_000, market.now)), 1_000) == "damaged"

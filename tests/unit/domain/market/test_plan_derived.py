"""Derived partitions are due when their inputs are not those of their record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.market.derived import coverage_inputs, coverage_status
from domain.shared.table import ABSENT, Version
from tests.unit.domain.market.world import (
    ADJUSTED,
    CATALOGUE,
    COVERED,
    TUESDAY,
    Market,
    content,
    state,
    unavailable,
)

PRICES, FACTORS = "normalized_daily", "normalized_adj_factor"


@pytest.fixture
def market() -> Market:
    return Market.healthy("2026-11-17 20:00")


def derived(market: Market) -> set[str]:
    return {
        v.table for v in market.plan.due if v.table in (ADJUSTED, COVERED) and v.partition == str(TUESDAY)
    }


@pytest.mark.parametrize("table", [PRICES, FACTORS])
def test_plan__input_revised__adjusted_prices_are_due(market: Market, table: str) -> None:
    market.put(table, TUESDAY, 1_000, words="revised")
    verdict = market.verdict(ADJUSTED, TUESDAY)
    assert (verdict.state, verdict.reason_code) == ("stale", "inputs_changed")
    assert table in verdict.reason


@pytest.mark.parametrize("table", [PRICES, FACTORS])
def test_plan__input_unavailable__derived_tables_wait(market: Market, table: str) -> None:
    place = table, str(TUESDAY)
    market.states[place] = unavailable(market.states[place])
    for derived_table in (ADJUSTED, COVERED):
        verdict = market.verdict(derived_table, TUESDAY)
        assert (verdict.state, verdict.reason_code) == ("waiting", "input_missing")
        assert table in verdict.reason
    assert not market.due()
    assert coverage_inputs(CATALOGUE, market.observed, str(TUESDAY)) is None, (
        "asked for it is not made either"
    )


@pytest.mark.parametrize("table", [ADJUSTED, COVERED])
def test_plan__derived_partition_unavailable__is_not_due(market: Market, table: str) -> None:
    place = table, str(TUESDAY)
    market.states[place] = unavailable(market.states[place])
    market.put("suspensions", TUESDAY, 3)
    assert market.verdict(table, TUESDAY).reason_code == "lake_unavailable"
    assert f"{table}:{TUESDAY}" not in market.due()


@pytest.mark.parametrize("table", [ADJUSTED, COVERED])
def test_plan__derived_partition_changed__is_due(market: Market, table: str) -> None:
    for breaking, found, reason in (
        ({"version": ABSENT}, "missing", "missing"),
        ({"version": content(7)}, "changed", "changed"),
        ({"version": Version(0, "", corrupt=True)}, "corrupt", "corrupt"),
        ({"recorded": None}, "changed", "unrecorded"),
    ):
        broken = replace(market, states=dict(market.states))
        broken.change(table, TUESDAY, **breaking)
        verdict = broken.verdict(table, TUESDAY)
        assert (verdict.state, verdict.reason_code) == (found, reason)
        broken.settle()
        assert not derived(broken)


def test_plan__input_names_changed__is_due(market: Market) -> None:
    inputs = dict(market.states[ADJUSTED, str(TUESDAY)].inputs)
    market.change(ADJUSTED, TUESDAY, inputs={**inputs, "normalized_old": "1:1"})
    assert market.verdict(ADJUSTED, TUESDAY).reason_code == "inputs_changed"


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
def test_coverage_status__rows_and_expected__decide(
    rows: int, seen: int, expected: int | None, status: str
) -> None:
    prices = CATALOGUE.by_name(PRICES)
    held = state(rows, Market.healthy("2026-11-17 20:00").now, seen=seen)
    assert coverage_status(prices, held, expected) == status


def test_coverage_status__table_may_be_empty__needs_a_record(market: Market) -> None:
    suspensions = CATALOGUE.by_name("suspensions")
    assert coverage_status(suspensions, state(0, market.now), None) == "asked"
    assert coverage_status(suspensions, state(3, market.now), None) == "complete"
    assert coverage_status(suspensions, replace(state(3, market.now), version=ABSENT), None) == "missing"
    assert coverage_status(suspensions, replace(state(0, market.now), recorded=None), None) == "missing"

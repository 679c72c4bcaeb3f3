"""A fingerprint stands for the reason of a work request: the ledger tries again when it changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from domain.shared.verdict import Verdict
from tests.unit.domain.market.world import (
    ADJUSTED,
    COVERED,
    REVISED,
    STOCKS,
    TUESDAY,
    Market,
    content,
    corrupt,
    shanghai_time,
)

PRICES = "normalized_daily"


@pytest.fixture
def market() -> Market:
    return Market.healthy("2026-11-17 20:00")


def request(market: Market, table: str = PRICES) -> Verdict:
    verdict = market.verdict(table, TUESDAY)
    assert verdict.due
    return verdict


def reconfigured(market: Market) -> Market:
    return replace(market, rules=replace(market.rules, configuration="another token"))


def missing(market: Market) -> None:
    market.drop(PRICES, TUESDAY)


def corrupt_day(market: Market) -> None:
    market.states[PRICES, str(TUESDAY)] = corrupt(market.states[PRICES, str(TUESDAY)])


def edited(market: Market) -> None:
    market.change(PRICES, TUESDAY, version=content(1_000, "edited"))


def outgrown(market: Market) -> None:
    market.put(PRICES, TUESDAY, 800)


def partial(market: Market) -> None:
    market.put(PRICES, TUESDAY, 950, checked=shanghai_time("2026-11-17 19:00"))


def due_for_a_recheck(market: Market) -> None:
    market.change(PRICES, TUESDAY, checked_at=shanghai_time("2026-11-17 18:00"))


REASONS = (missing, corrupt_day, edited, outgrown, partial, due_for_a_recheck)


@pytest.mark.parametrize("breaks", REASONS)
def test_fingerprint__nothing_changes__is_the_same(market: Market, breaks: Callable[[Market], None]) -> None:
    breaks(market)
    assert request(market).fingerprint == request(market.at("2026-11-17 20:05")).fingerprint


@pytest.mark.parametrize("breaks", REASONS)
def test_fingerprint__setting_changes__is_another(market: Market, breaks: Callable[[Market], None]) -> None:
    """Work that failed for good (a wrong token) is asked for again when the setting changes."""
    breaks(market)
    assert request(market).fingerprint != request(reconfigured(market)).fingerprint


def test_fingerprint__setting_changes__references_have_another() -> None:
    market = Market(shanghai_time("2026-11-17 20:00"))
    for verdict in market.plan.due:
        assert (
            reconfigured(market).verdict(verdict.table, verdict.partition).fingerprint != verdict.fingerprint
        )


def test_fingerprint__each_reason__has_its_own(market: Market) -> None:
    found = set()
    for breaks in REASONS:
        broken = replace(market, states=dict(market.states))
        breaks(broken)
        found.add(request(broken).fingerprint)
    assert len(found) == len(REASONS)


def test_fingerprint__reference__changes_once_a_day() -> None:
    market = Market.healthy("2026-11-16 20:00")
    prints = [
        market.at(moment).verdict(STOCKS, "ALL").fingerprint
        for moment in ("2026-11-17 09:00", "2026-11-17 23:00", "2026-11-18 08:59", "2026-11-18 09:00")
    ]
    assert prints[0] == prints[1] == prints[2] != prints[3]


@pytest.mark.parametrize("table", [ADJUSTED, COVERED])
def test_fingerprint__inputs_change__derived_table_has_another(market: Market, table: str) -> None:
    market.put(PRICES, TUESDAY, 1_000, words="revised")
    first = request(market, table).fingerprint
    assert request(market.at("2026-11-17 20:05"), table).fingerprint == first
    market.put(PRICES, TUESDAY, 1_000, words="revised again")
    assert request(market, table).fingerprint != first


@pytest.mark.parametrize("table", [ADJUSTED, COVERED, REVISED])
def test_fingerprint__setting_changes__derived_table_keeps_its_own(market: Market, table: str) -> None:
    market.put(PRICES, TUESDAY, 1_000, words="revised")
    market.revised.add(TUESDAY)
    assert request(market, table).fingerprint == request(reconfigured(market), table).fingerprint

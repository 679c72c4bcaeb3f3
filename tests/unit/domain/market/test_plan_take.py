"""Which due work one pass takes: the newest days up to the limit, and work already in the ledger."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pytest

from domain.market.plan import KINDS, REFRESH
from domain.market.plan import take as take_of
from domain.shared.verdict import Verdict
from tests.unit.domain.market.world import (
    COVERED,
    DAILY,
    RULES,
    TUESDAY,
    Market,
    reference_keys,
)

LIMIT = RULES.limit
SIX_DAYS = ["2026-11-17", "2026-11-16", "2026-11-13", "2026-11-12", "2026-11-11", "2026-11-10"]
PRICES = "normalized_daily"


@pytest.fixture
def broken() -> Market:
    """Six days of which the prices are gone."""
    market = Market.healthy("2026-11-17 20:00")
    for day in market.window:
        market.drop(PRICES, day)
    return market


def take(market: Market, live: Collection[str] = (), limit: int = LIMIT) -> tuple[Verdict, ...]:
    return take_of(market.plan, limit, live.__contains__)


def partitions(taken: Iterable[Verdict]) -> list[str]:
    return list(dict.fromkeys(v.partition for v in taken))


def test_take__newest_days_failed_for_good__takes_older_days() -> None:
    """A table the account may not read fails for good on the newest days; older gaps have their turn."""
    market = Market.healthy("2026-11-17 20:00")
    for day in SIX_DAYS[:3]:
        market.forget("normalized_daily_basic", day)
        market.work(market.verdict(COVERED, day))
    market.drop(PRICES, SIX_DAYS[4])
    given_up = {f"normalized_daily_basic:{day}" for day in SIX_DAYS[:3]}
    assert f"{PRICES}:{SIX_DAYS[4]}" in {v.key for v in take(market, given_up)}


@pytest.mark.parametrize("live", [(), (f"{PRICES}:{TUESDAY}",)])
def test_take__one_day__takes_all_its_due_tables(live: tuple[str, ...]) -> None:
    market = Market.healthy("2026-11-16 20:00").at("2026-11-17 20:00")
    taken = take(market, live, limit=1)
    assert {v.table for v in taken if v.partition == str(TUESDAY)} == set(DAILY)


def test_take__references_due__do_not_count_as_days(broken: Market) -> None:
    for key in reference_keys(broken.now):
        table, partition = key.split(":")
        broken.forget(table, partition)
    taken = take(broken)
    assert {v.key for v in taken if v.request.kind == REFRESH} == reference_keys(broken.now)
    assert partitions(v for v in taken if v.request.kind != REFRESH) == SIX_DAYS[:3]


def test_kinds__transient_failure__is_never_final() -> None:
    for kind in KINDS:
        waits = [kind.transient.delay(n).total_seconds() for n in range(9)]
        assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
        assert not kind.transient.exhausted(10_000)

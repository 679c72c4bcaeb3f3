"""What one look takes of a plan: a few days, the newest first, and what is already on its way."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pytest

from domain.market.plan import FILL, KINDS, PRIORITY, REFRESH, Verdict
from tests.unit.market.world import (
    COVERED,
    DAILY,
    RULES,
    TUESDAY,
    Market,
    reference_keys,
    shanghai_time,
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
    return market.plan.take(limit, live.__contains__)


def partitions(taken: Iterable[Verdict]) -> list[str]:
    return list(dict.fromkeys(v.partition for v in taken))


def test_a_look_takes_the_three_newest_days(broken: Market) -> None:
    assert partitions(take(broken)) == SIX_DAYS[:3]


def test_the_next_look_takes_the_three_after_them(broken: Market) -> None:
    live = {v.key for v in take(broken)}
    second = [v for v in take(broken, live) if v.key not in live]
    assert partitions(second) == SIX_DAYS[3:]


def test_six_broken_days_take_two_looks(broken: Market) -> None:
    looks = 0
    while taken := take(broken):
        looks += 1
        for verdict in taken:
            broken.work(verdict)
    assert looks == 2
    assert not broken.due()


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (1, 1), (5, 5), (99, 6)])
def test_the_limit_is_a_setting(broken: Market, limit: int, count: int) -> None:
    assert len(partitions(take(broken, limit=limit))) == count


def test_a_day_is_taken_with_all_its_due_tables() -> None:
    market = Market.healthy("2026-11-16 20:00").at("2026-11-17 20:00")
    taken = [v for v in take(market, limit=1) if v.partition == str(TUESDAY)]
    assert {v.table for v in taken} == set(DAILY)


def test_what_is_already_on_its_way_takes_no_place(broken: Market) -> None:
    live = {f"{table}:{day}" for day in SIX_DAYS[:3] for table in (PRICES, COVERED)}
    taken = take(broken, live)
    assert partitions(taken) == SIX_DAYS
    assert live <= {v.key for v in taken}, "it is wished for again, so that its fingerprint stays true"


def test_days_given_up_hide_no_older_day() -> None:
    """A table the account may not read fails for good on the newest days; older gaps have their turn."""
    market = Market.healthy("2026-11-17 20:00")
    for day in SIX_DAYS[:3]:
        market.forget("normalized_daily_basic", day)
        market.work(market.verdict(COVERED, day))
    market.drop(PRICES, SIX_DAYS[4])
    given_up = {f"normalized_daily_basic:{day}" for day in SIX_DAYS[:3]}
    assert f"{PRICES}:{SIX_DAYS[4]}" in {v.key for v in take(market, given_up)}


def test_a_day_of_which_one_table_is_on_its_way_is_still_taken_for_the_others() -> None:
    market = Market.healthy("2026-11-16 20:00").at("2026-11-17 20:00")
    taken = take(market, {f"{PRICES}:{TUESDAY}"}, limit=1)
    assert {v.table for v in taken if v.partition == str(TUESDAY)} == set(DAILY)


def test_references_never_take_a_day_s_place(broken: Market) -> None:
    for key in reference_keys(broken.now):
        table, partition = key.split(":")
        broken.forget(table, partition)
    taken = take(broken)
    assert {v.key for v in taken if v.state == "refresh"} == reference_keys(broken.now)
    assert partitions(v for v in taken if v.state != "refresh") == SIX_DAYS[:3]


def test_rechecks_have_places_of_their_own() -> None:
    market = Market.healthy("2026-11-16 20:00")
    for day in SIX_DAYS[1:]:
        market.drop(PRICES, day)
    taken = take(market.at("2026-11-17 20:00"))
    assert partitions(v for v in taken if v.state in ("gap", "derive")) == SIX_DAYS[:3]
    assert partitions(v for v in taken if v.state == "recheck") == SIX_DAYS[1:3]


def test_gaps_are_named_before_rechecks() -> None:
    states = [v.state for v in take(Market.healthy("2026-11-16 20:00").at("2026-11-17 20:00"))]
    assert states.index("recheck") > max(n for n, s in enumerate(states) if s == "gap")


def test_nothing_is_taken_twice(broken: Market) -> None:
    for live in ((), {f"{PRICES}:{SIX_DAYS[0]}"}, {f"{PRICES}:{d}" for d in SIX_DAYS}):
        keys = [v.key for v in take(broken, live)]
        assert len(keys) == len(set(keys))


def test_healthy_work_on_its_way_is_not_wished_for_again(broken: Market) -> None:
    assert f"normalized_adj_factor:{TUESDAY}" not in {
        v.key for v in take(broken, {f"normalized_adj_factor:{TUESDAY}"})
    }


def test_every_wish_has_a_known_kind_a_priority_and_a_fingerprint() -> None:
    kinds = {kind.name for kind in KINDS}
    assert kinds == {FILL, REFRESH}
    for verdict in take(Market(shanghai_time("2026-11-17 20:00"))):
        item = verdict.item()
        assert item.kind in kinds
        assert item.priority == PRIORITY[verdict.state]
        assert item.fingerprint
        assert not item.once, "a day lost twice must be wished for twice"


def test_a_transient_failure_is_never_final_inside_the_window() -> None:
    for kind in KINDS:
        waits = [kind.transient.delay(n).total_seconds() for n in range(9)]
        assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
        assert not kind.transient.exhausted(10_000)

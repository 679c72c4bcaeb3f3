"""What holds of every plan, whatever was observed: complete, minimal, stable."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.market.plan import is_gap, plan, take
from domain.market.trading import due_at
from domain.shared.state import PartitionState
from domain.shared.table import ABSENT, ALL, Version
from domain.shared.verdict import Verdict
from tests.unit.domain.market.world import (
    ADJUSTED,
    CALENDAR,
    CATALOGUE,
    COVERED,
    DAILY,
    JUDGED,
    LISTED,
    RULES,
    SHANGHAI,
    STOCKS,
    Market,
    content,
    state,
)

MOMENTS = st.datetimes(datetime(2026, 9, 20), datetime(2027, 1, 20)).map(  # noqa: DTZ001
    lambda moment: moment.replace(tzinfo=SHANGHAI)
)
ROWS = st.sampled_from([0, 1, 500, 899, 900, 950, 989, 990, LISTED, 1_100])


@st.composite
def partition_states(draw: st.DrawFn, now: datetime) -> PartitionState:
    """Anything that may ever be found of one partition."""
    checked = now - timedelta(minutes=draw(st.integers(0, 60 * 24 * 12)))
    held = state(draw(ROWS), checked, seen=draw(st.integers(1, 3)), fetches=draw(st.integers(1, 5)))
    match draw(st.sampled_from(["untouched", "untouched", "gone", "corrupt", "edited", "unrecorded"])):
        case "gone":
            return replace(held, version=ABSENT)
        case "corrupt":
            return replace(held, version=Version(0, "", corrupt=True))
        case "edited":
            return replace(held, version=content(draw(ROWS), "edited"))
        case "unrecorded":
            return replace(held, recorded=None, checked_at=None, seen_count=0, detail={})
        case _:
            return held


@st.composite
def markets(draw: st.DrawFn) -> Market:
    """Healthy at first, then some partitions replaced by anything, or by nothing."""
    now = draw(MOMENTS)
    market = Market.healthy(now) if draw(st.booleans()) else Market(now)
    tables = [*DAILY, ADJUSTED, COVERED]
    places = [(t, str(d)) for d in market.window for t in tables] + [(STOCKS, ALL), (CALENDAR, "2026")]
    for place in draw(st.lists(st.sampled_from(places), max_size=12, unique=True)):
        found = draw(st.none() | partition_states(now))
        market.states.pop(place, None)
        if found is not None:
            market.states[place] = found
    market.revised |= draw(st.sets(st.sampled_from([*market.window, date(2026, 3, 2)]), max_size=2))
    return market


@given(markets(), st.dictionaries(st.sampled_from(JUDGED), ROWS.filter(lambda n: n >= 900)))
@settings(max_examples=40, deadline=None)
def test_plan__work_done__leaves_nothing_due(market: Market, answers: dict[str, int]) -> None:
    """Whatever is broken, and even if the source's days are thin: doing what is asked ends."""
    market.source = {(t, str(d)): rows for t, rows in answers.items() for d in market.window}
    assert market.settle() <= 3
    assert {v.state for v in market.plan.verdicts} <= {"healthy", "waiting"}


@given(markets())
@settings(max_examples=40, deadline=None)
def test_plan__work_done__every_due_day_is_complete(market: Market) -> None:
    market.settle()
    for day in market.window:
        for endpoint in CATALOGUE.daily:
            if market.now >= due_at(endpoint, day, RULES.daily_at):
                held = market.states[endpoint.name, str(day)]
                assert held.untouched
                assert endpoint.may_be_empty or held.version.rows >= 0.9 * LISTED


@given(markets())
@settings(max_examples=40, deadline=None)
def test_plan__complete_and_untouched_partition__is_only_rechecked(market: Market) -> None:
    for verdict in market.plan.due:
        held = market.states.get((verdict.table, verdict.partition), PartitionState())
        whole = held.untouched and (
            held.version.rows >= 0.99 * LISTED or (verdict.table == "suspensions" and not held.version.rows)
        )
        if verdict.table in DAILY and whole:
            assert verdict.reason_code == "recheck"
            assert held.checked_at is not None
            assert held.checked_at < market.now
        if verdict.table in (STOCKS, CALENDAR) and held.untouched and held.version != ABSENT:
            assert verdict.reason_code == "daily_refresh"
        if verdict.table in (ADJUSTED, COVERED) and held.untouched:
            assert verdict.reason_code == "inputs_changed"


@given(markets(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_plan__any_order_of_states__is_the_same(market: Market, chance: random.Random) -> None:
    seen = market.observed
    shuffled = list(seen.states.items())
    chance.shuffle(shuffled)
    again = replace(seen, states=dict(shuffled), expected=dict(reversed(list(seen.expected.items()))))
    assert plan(CATALOGUE, again, market.now, RULES) == plan(CATALOGUE, seen, market.now, RULES)


@given(markets())
@settings(max_examples=40, deadline=None)
def test_plan__any_market__has_one_verdict_for_each_partition(market: Market) -> None:
    keys = [v.key for v in market.plan.verdicts]
    assert len(keys) == len(set(keys))


def _is_new_day(verdict: Verdict, live: set[str]) -> bool:
    return verdict.table not in (STOCKS, CALENDAR) and verdict.key not in live


@given(markets(), st.integers(0, 4), st.data())
@settings(max_examples=40, deadline=None)
def test_take__any_limit__takes_the_newest_due_days_only(
    market: Market, limit: int, data: st.DataObject
) -> None:
    due = market.plan.due
    live = set(data.draw(st.lists(st.sampled_from([v.key for v in due] or ["none"]), max_size=6)))
    taken = take(market.plan, limit, live.__contains__)
    assert {v.key for v in taken} <= {v.key for v in due}
    assert len({v.key for v in taken}) == len(taken)
    assert live & {v.key for v in due} <= {v.key for v in taken}
    for gaps in (True, False):
        fresh = {v.partition for v in taken if _is_new_day(v, live) and is_gap(v) == gaps}
        possible = {v.partition for v in due if _is_new_day(v, live) and is_gap(v) == gaps}
        assert fresh == set(sorted(possible, reverse=True)[:limit])


@given(markets())
@settings(max_examples=50, deadline=None)
def test_take__three_days_at_a_time__ends_where_all_at_once_does(market: Market) -> None:
    slowly = replace(market, states=dict(market.states), revised=set(market.revised))
    for _ in range(20):
        for verdict in take(slowly.plan, RULES.limit, lambda _: False):
            slowly.work(verdict)
    market.settle()
    assert not slowly.due()
    assert {k: c.version for k, c in slowly.states.items()} == {
        k: c.version for k, c in market.states.items()
    }

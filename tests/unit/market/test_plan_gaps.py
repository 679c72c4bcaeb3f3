"""What makes a table of a due day a gap, and what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.market.plan import FILL
from domain.shared.table import ABSENT, ALL, Version
from tests.unit.market.world import (
    ADJUSTED,
    COVERED,
    DAILY,
    JUDGED,
    STOCKS,
    TUESDAY,
    UNREAD,
    Market,
    content,
    corrupt,
    shanghai_time,
    unavailable,
)

EVENING = "2026-11-17 20:00"
PRICES = "normalized_daily"


@pytest.fixture
def market() -> Market:
    return Market.healthy(EVENING)


def told(market: Market, table: str = PRICES) -> tuple[str, str]:
    verdict = market.verdict(table, TUESDAY)
    return verdict.state, verdict.reason_code


def test_nothing_is_due_when_everything_was_just_done(market: Market) -> None:
    assert not market.due()
    assert {v.state for v in market.plan.verdicts} == {"healthy"}


def test_a_table_never_fetched_is_a_gap(market: Market) -> None:
    market.forget(PRICES, TUESDAY)
    assert told(market) == ("gap", "missing")
    assert market.verdict(PRICES, TUESDAY).why == "never fetched, 1,000 rows expected"


def test_rows_that_are_gone_are_a_gap(market: Market) -> None:
    market.drop(PRICES, TUESDAY)
    assert told(market) == ("gap", "missing")
    assert "its 1,000 rows are gone" in market.verdict(PRICES, TUESDAY).why


def test_a_damaged_file_is_a_gap(market: Market) -> None:
    market.states[PRICES, str(TUESDAY)] = corrupt(market.states[PRICES, str(TUESDAY)])
    assert told(market) == ("gap", "damaged")


@pytest.mark.parametrize("recorded", [True, False])
def test_what_cannot_be_read_is_neither_healthy_nor_work(market: Market, recorded: bool) -> None:
    place = PRICES, str(TUESDAY)
    market.states[place] = unavailable(market.states[place])
    if not recorded:
        market.change(*place, recorded=None)
    assert told(market) == ("unknown", "lake_unreadable")
    assert market.verdict(*place).why == f"waits: {UNREAD}"
    assert market.due() == set(), "no other day, and nothing of this one"
    assert told(market, "normalized_adj_factor") == ("healthy", "")


@pytest.mark.parametrize(("reference", "waiting"), [(("suspensions", str(TUESDAY)), 2), ((STOCKS, ALL), 3)])
def test_a_day_is_not_judged_by_what_cannot_be_read(
    market: Market, reference: tuple[str, str], waiting: int
) -> None:
    """Judged by nothing a thin day would be called whole, and an answer of the source would be refused."""
    market.put(PRICES, TUESDAY, 950)
    market.drop("normalized_daily_basic", TUESDAY)
    market.states[reference] = unavailable(market.states[reference])
    verdicts = [market.verdict(t, TUESDAY) for t in JUDGED]
    assert sum(v.why == f"it waits for {reference[0]}: {UNREAD}" for v in verdicts) == waiting
    assert not any(v.due for v in verdicts)
    assert market.verdict(*reference).reason_code == "lake_unreadable"


def test_a_damaged_file_that_nobody_recorded_is_a_gap(market: Market) -> None:
    market.change(PRICES, TUESDAY, version=Version(0, "", corrupt=True), recorded=None)
    assert told(market) == ("gap", "damaged")


def test_a_hand_edit_that_keeps_the_number_of_rows_is_a_gap(market: Market) -> None:
    market.change(PRICES, TUESDAY, version=content(1_000, "edited"))
    assert told(market) == ("gap", "changed")


@pytest.mark.parametrize(("left", "reason"), [(500, "incomplete"), (899, "incomplete"), (900, "changed")])
def test_a_day_of_which_rows_were_deleted_is_a_gap(market: Market, left: int, reason: str) -> None:
    market.change(PRICES, TUESDAY, version=content(left))
    assert told(market) == ("gap", reason)


def test_half_a_day_says_how_much_is_left(market: Market) -> None:
    market.change(PRICES, TUESDAY, version=content(500))
    assert market.verdict(PRICES, TUESDAY).why == "500 of 1,000 rows (50.0%) are left"


def test_rows_whose_commit_was_never_recorded_are_a_gap(market: Market) -> None:
    """A worker was killed between the commit and its record: fetched again, it is proven."""
    market.change(PRICES, TUESDAY, recorded=None)
    assert told(market) == ("gap", "unrecorded")


def test_a_table_that_may_be_empty_must_have_been_asked(market: Market) -> None:
    assert told(market, "suspensions") == ("healthy", "")
    market.forget("suspensions", TUESDAY)
    assert told(market, "suspensions") == ("gap", "missing")


def test_suspensions_that_are_gone_are_a_gap_although_none_would_be_an_answer(market: Market) -> None:
    market.put("suspensions", TUESDAY, 4)
    market.drop("suspensions", TUESDAY)
    assert told(market, "suspensions") == ("gap", "missing")


def test_suspensions_that_somebody_invented_are_a_gap(market: Market) -> None:
    market.change("suspensions", TUESDAY, version=content(2))
    assert told(market, "suspensions") == ("gap", "changed")


def test_a_table_recorded_as_empty_that_may_not_be_is_a_gap(market: Market) -> None:
    market.put(PRICES, TUESDAY, 0)
    assert told(market) == ("gap", "incomplete")


def test_a_day_on_which_nothing_was_listed_is_whole_without_rows() -> None:
    market = Market.healthy(EVENING, listed=0)
    market.put(PRICES, TUESDAY, 0)
    market.settle()
    assert told(market) == ("healthy", "")


def test_a_day_accepted_once_is_a_gap_when_the_stock_list_grew(market: Market) -> None:
    grown = replace(market, listed=1_200)
    assert told(grown) == ("gap", "incomplete")
    assert grown.verdict(PRICES, TUESDAY).why == "1,000 of 1,200 rows (83.3%)"


def test_without_a_stock_list_a_fetched_day_is_left_alone_and_a_missing_one_is_a_gap(market: Market) -> None:
    blind = replace(market, listed=None)
    assert {v.state for v in blind.plan.verdicts if v.table in DAILY} == {"healthy"}
    blind.forget(PRICES, TUESDAY)
    assert told(blind) == ("gap", "missing")
    assert blind.verdict(PRICES, TUESDAY).why == "never fetched"


def test_one_table_s_gap_leaves_the_others_alone(market: Market) -> None:
    market.drop(PRICES, TUESDAY)
    assert market.due() == {f"{PRICES}:{TUESDAY}", f"{COVERED}:{TUESDAY}"}


def test_the_same_day_dropped_twice_is_a_gap_twice(market: Market) -> None:
    for _ in range(2):
        market.drop(PRICES, TUESDAY)
        assert told(market) == ("gap", "missing")
        market.settle()
        assert told(market) == ("healthy", "")


@pytest.mark.parametrize(("rows", "state"), [(899, "gap"), (900, "early"), (989, "early"), (990, "healthy")])
def test_the_thresholds_of_a_fetched_day(market: Market, rows: int, state: str) -> None:
    market.put(PRICES, TUESDAY, rows)
    assert told(market)[0] == state


# Partial days: asked for again after 1, 6 and 24 hours, then daily, until the source says the same twice.


@pytest.mark.parametrize(("fetches", "hours"), [(1, 1), (2, 6), (3, 24), (4, 24), (9, 24)])
def test_a_partial_day_is_asked_for_again_later_and_later(fetches: int, hours: int) -> None:
    market = Market.healthy("2026-11-13 20:00")
    [friday] = market.window[-1:]
    market.put(PRICES, friday, 950, fetches=fetches)
    due = shanghai_time("2026-11-13 20:00").timestamp() + hours * 3600
    for second, state in ((-1, "early"), (0, "gap"), (1, "gap")):
        now = market.now.fromtimestamp(due + second, tz=market.now.tzinfo)
        verdict = replace(market, now=now).verdict(PRICES, friday)
        assert (verdict.state, verdict.reason_code) == (state, "partial")


def test_a_partial_day_whose_fetches_nobody_counted_was_fetched_once(market: Market) -> None:
    market.put(PRICES, TUESDAY, 950)
    market.change(PRICES, TUESDAY, detail={})
    assert told(market.at("2026-11-17 20:59"))[0] == "early"
    assert told(market.at("2026-11-17 21:00"))[0] == "gap"


def test_a_partial_day_that_waits_says_when_it_is_asked_for_again(market: Market) -> None:
    market.put(PRICES, TUESDAY, 950, fetches=3)
    assert market.verdict(PRICES, TUESDAY).why == (
        "950 of 1,000 rows (95.0%), fetched again from 2026-11-18 20:00"
    )


def test_a_partial_day_the_source_confirms_is_explained_and_no_gap_any_more(market: Market) -> None:
    market.source[PRICES, str(TUESDAY)] = 950
    market.forget(PRICES, TUESDAY)
    market.settle()
    assert told(market) == ("early", "partial")
    later = market.at("2026-11-17 21:00")
    assert told(later) == ("gap", "partial")
    later.settle()
    assert told(later) == ("explained", "source_says_so")
    assert not later.due()
    assert "the same 2 times" in later.verdict(PRICES, TUESDAY).why


def test_a_partial_day_that_still_grows_is_not_explained(market: Market) -> None:
    for rows, hour in ((950, "20:00"), (970, "21:00")):
        market.source[PRICES, str(TUESDAY)] = rows
        market = market.at(f"2026-11-17 {hour}")
        market.work(market.verdict(PRICES, TUESDAY))
    assert told(market) == ("early", "partial")


def test_a_partial_day_that_became_whole_is_healthy(market: Market) -> None:
    market.source[PRICES, str(TUESDAY)] = 950
    market.forget(PRICES, TUESDAY)
    market.work(market.verdict(PRICES, TUESDAY))
    market.source.clear()
    later = market.at("2026-11-17 21:00")
    later.settle()
    assert told(later) == ("healthy", "")


def test_an_explained_day_that_is_touched_is_a_gap_again(market: Market) -> None:
    market.put(PRICES, TUESDAY, 950, seen=2)
    assert told(market)[0] == "explained"
    market.change(PRICES, TUESDAY, version=content(949))
    assert told(market) == ("gap", "changed")


def test_work_is_day_by_table_and_gaps_are_filled_before_what_derives_from_them(market: Market) -> None:
    market.forget(PRICES, TUESDAY)
    gap = market.verdict(PRICES, TUESDAY).item()
    assert (gap.kind, gap.key, gap.reason_code) == (FILL, f"{PRICES}:{TUESDAY}", "missing")
    assert gap.priority > market.verdict(COVERED, TUESDAY).item().priority


def test_a_whole_day_lost_is_one_gap_for_each_of_its_tables(market: Market) -> None:
    for table in (*JUDGED, ADJUSTED, COVERED):
        market.drop(table, TUESDAY)
    assert {v.table for v in market.plan.due} == {*JUDGED, COVERED}
    assert market.states["suspensions", str(TUESDAY)].version == ABSENT
    assert market.settle() == 2, "one look fetches, one derives what needed it"

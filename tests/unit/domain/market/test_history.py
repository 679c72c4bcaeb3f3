"""Days before the gap window: which differ from what was recorded, and which were never fetched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from domain.market.history import Recorded, Records, differing, earlier, holes, judged_tables
from domain.market.trading import ranges
from tests.unit.domain.market.world import ADJUSTED, CATALOGUE, COVERED, DAILY, days, trading_calendar

PRICES, FACTORS = "normalized_daily", "normalized_adj_factor"
DAY, OTHER = "2026-03-02", "2026-03-03"
Rows = dict[str, dict[str, Recorded]]


@pytest.fixture
def recorded() -> Rows:
    """Two days as they should be."""
    version, of = "9:d", ("2026-03-02", "2026-03-03")
    found = {table: {day: Recorded(version, {}, "complete") for day in of} for table in DAILY}
    inputs = {PRICES: version, FACTORS: version}
    found[ADJUSTED] = {day: Recorded(version, inputs) for day in of}
    found[COVERED] = {day: Recorded(version, dict.fromkeys(DAILY, f"{version} complete of 9")) for day in of}
    return found


def held(records: Records) -> dict[str, dict[str, str]]:
    return {table: {day: one.version for day, one in of.items()} for table, of in records.items()}


def test_differing__lake_is_as_recorded__is_nothing(recorded: Rows) -> None:
    assert differing(CATALOGUE, held(recorded), recorded) == set()


@pytest.mark.parametrize("table", judged_tables(CATALOGUE))
@pytest.mark.parametrize("version", ["8:other", "corrupt", "unavailable", "0:"])
def test_differing__another_version__is_the_day(recorded: Rows, table: str, version: str) -> None:
    lake = held(recorded)
    lake[table][DAY] = version
    assert differing(CATALOGUE, lake, recorded) == {DAY}


def _never_adjusted(records: Rows) -> None:
    del records[ADJUSTED][DAY]


def _never_covered(records: Rows) -> None:
    del records[COVERED][DAY]


def _prices_made_again(records: Rows) -> None:
    records[PRICES][DAY] = Recorded("10:e", {}, "complete")


def _partial_once(records: Rows) -> None:
    records[PRICES][DAY] = replace(records[PRICES][DAY], status="partial")


@pytest.mark.parametrize("change", [_never_adjusted, _never_covered, _prices_made_again, _partial_once])
def test_differing__records_say_that_work_is_left__is_the_day(
    recorded: Rows, change: Callable[[Rows], None]
) -> None:
    change(recorded)
    assert differing(CATALOGUE, held(recorded), recorded) == {DAY}


def _partial_twice(records: Rows) -> None:
    records[PRICES][DAY] = replace(records[PRICES][DAY], status="partial", seen_count=2)


def _new_table(records: Rows) -> None:
    """Of a table that is new in the catalogue, coverage of older days says nothing."""
    records["normalized_daily_basic"].clear()
    for day, one in records[COVERED].items():
        known = {name: text for name, text in one.inputs.items() if name != "normalized_daily_basic"}
        records[COVERED][day] = replace(one, inputs=known)


def _stock_list_grew(records: Rows) -> None:
    inputs = dict.fromkeys(DAILY, "9:d partial of 10")
    records[COVERED][DAY] = replace(records[COVERED][DAY], inputs=inputs)


@pytest.mark.parametrize("change", [_partial_twice, _new_table, _stock_list_grew])
def test_differing__nothing_is_left_to_do__is_nothing(recorded: Rows, change: Callable[[Rows], None]) -> None:
    change(recorded)
    assert differing(CATALOGUE, held(recorded), recorded) == set()


def test_holes__open_days_since_the_first_of_each_table__are_those_without_any() -> None:
    had = {
        PRICES: set(days("2026-03-02", "2026-03-06")),
        FACTORS: set(days("2026-03-05", "2026-03-06")),
        "suspensions": set(),
    }
    [first, end] = days("2026-01-01", "2026-03-10")
    found = holes(trading_calendar(), had, first, end)
    assert found == {
        PRICES: days("2026-03-03", "2026-03-04", "2026-03-05", "2026-03-09"),
        FACTORS: days("2026-03-09"),
    }
    [begins] = days("2026-03-05")
    assert holes(trading_calendar(), had, begins, end)[PRICES] == days("2026-03-05", "2026-03-09")


def test_earlier__days_before_the_first_of_a_table__are_those_since_the_first_of_any() -> None:
    had = {
        PRICES: set(days("2026-03-02", "2026-03-06")),
        FACTORS: set(days("2026-03-05", "2026-03-06")),
        "suspensions": set(),
    }
    [first, end] = days("2026-01-01", "2026-03-09")
    since = days("2026-03-02", "2026-03-03", "2026-03-04")
    assert earlier(trading_calendar(), had, first, end) == {
        FACTORS: since,
        "suspensions": (*since, *days("2026-03-05", "2026-03-06")),
    }
    [begins] = days("2026-03-04")
    assert earlier(trading_calendar(), had, begins, end)[FACTORS] == (begins,)
    assert earlier(trading_calendar(), {PRICES: set(), FACTORS: set()}, first, end) == {}


def test_ranges__a_weekend_between__is_one_run() -> None:
    missing = days("2026-03-05", "2026-03-06", "2026-03-09", "2026-03-11")
    found = ranges(missing, lambda *pair: not trading_calendar().follow(*pair))
    assert list(found) == [missing[:3], missing[3:]]

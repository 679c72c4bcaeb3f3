"""Is a day of a table whole? The one judgement, at its boundaries."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.market.completeness import is_settled, is_thinner, judge, refetch_at
from domain.shared.state import NOTHING, PartitionState
from tests.unit.domain.market.world import CATALOGUE, corrupt, state

PRICES = CATALOGUE.by_name("normalized_daily")
SUSPENSIONS = CATALOGUE.by_name("suspensions")
BY_FLOOR = replace(SUSPENSIONS, may_be_empty=False, floor=4_000)
UNBOUNDED = replace(SUSPENSIONS, may_be_empty=False)
NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("rows", "expected", "status"),
    [
        (0, 1_000, "empty"),
        (1, 1_000, "refused"),
        (899, 1_000, "refused"),
        (900, 1_000, "partial"),  # exactly 0.90
        (901, 1_000, "partial"),
        (989, 1_000, "partial"),
        (990, 1_000, "complete"),  # exactly 0.99
        (1_000, 1_000, "complete"),
        (1_001, 1_000, "complete"),
        (4_499, 5_000, "refused"),
        (4_500, 5_000, "partial"),
        (4_949, 5_000, "partial"),
        (4_950, 5_000, "complete"),
        (0, 0, "complete"),
        (3, 0, "complete"),
        (0, None, "empty"),
        (1, None, "unjudged"),
    ],
)
def test_judge__reference__decides_by_the_ratio(rows: int, expected: int | None, status: str) -> None:
    assert judge(PRICES, rows, expected).status == status


@given(st.integers(1, 10_000), st.integers(1, 12_000))
def test_judge__thresholds__are_exact_in_whole_numbers(expected: int, rows: int) -> None:
    wanted = (
        "refused" if 10 * rows < 9 * expected else "partial" if 100 * rows < 99 * expected else "complete"
    )
    assert judge(PRICES, rows, expected).status == wanted


@pytest.mark.parametrize(
    ("rows", "status"), [(0, "empty"), (1, "refused"), (3_999, "refused"), (4_000, "complete")]
)
def test_judge__no_reference__decides_by_the_floor(rows: int, status: str) -> None:
    assert judge(BY_FLOOR, rows, None).status == status


def test_judge__reference_and_floor__ignores_the_floor() -> None:
    assert judge(replace(PRICES, floor=4_000), 100, 100).status == "complete"


@pytest.mark.parametrize(("rows", "status"), [(0, "empty"), (1, "complete")])
def test_judge__neither_reference_nor_floor__takes_any_row(rows: int, status: str) -> None:
    assert judge(UNBOUNDED, rows, None).status == status


@pytest.mark.parametrize(("rows", "status"), [(0, "asked"), (1, "complete")])
def test_judge__may_be_empty__takes_no_rows(rows: int, status: str) -> None:
    assert judge(SUSPENSIONS, rows, None).status == status


@pytest.mark.parametrize(("fetches", "hours"), [(0, 1), (1, 1), (2, 6), (3, 24), (4, 24), (100, 24)])
def test_refetch_at__partial_day__is_after_1_6_and_24_hours(fetches: int, hours: int) -> None:
    assert refetch_at(fetches, NOON) == NOON + timedelta(hours=hours)


@pytest.mark.parametrize(
    ("rows", "held", "thinner"),
    [
        (999, state(1_000, NOON), True),
        (1_000, state(1_000, NOON), False),
        (1_001, state(1_000, NOON), False),
        (0, NOTHING, False),
        (999, corrupt(state(1_000, NOON)), False),  # what is there has to be made again
        (999, replace(state(1_000, NOON), recorded=None), False),
    ],
)
def test_is_thinner__answer__is_compared_with_a_whole_day(
    rows: int, held: PartitionState, thinner: bool
) -> None:
    assert is_thinner(rows, held) == thinner


@pytest.mark.parametrize(
    ("status", "seen", "settled"),
    [("complete", 1, True), ("partial", 1, False), ("partial", 2, True), (None, 1, True)],
)
def test_is_settled__day__is_whole_or_explained(status: str | None, seen: int, settled: bool) -> None:
    assert is_settled(PartitionState(seen_count=seen, detail={"status": status})) == settled

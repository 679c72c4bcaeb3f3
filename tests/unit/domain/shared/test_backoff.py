"""Waiting as a value."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.shared.backoff import Backoff
from domain.shared.work import RECURRENCE, UNCLASSIFIED

MINUTE = timedelta(seconds=60)


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [
        (Backoff(MINUTE), [60, 120, 240, 480, 960, 1_920, 3_600, 3_600]),
        (UNCLASSIFIED, [5, 25, 125, 300, 300]),
        (RECURRENCE, [30, 60, 120]),
        (Backoff(MINUTE, factor=1), [60, 60, 60]),
        (Backoff(timedelta(hours=2), cap=MINUTE), [60, 60]),
    ],
)
def test_delay__one_attempt_after_another__grows_by_the_factor_up_to_the_cap(
    backoff: Backoff, waits: list[float]
) -> None:
    assert [backoff.delay(n).total_seconds() for n in range(len(waits))] == waits


@given(st.integers(0, 10**6), st.floats(0.01, 3_600), st.floats(1, 10), st.floats(0, 86_400))
def test_delay__any_attempt__is_between_zero_and_the_cap(
    attempt: int, base: float, factor: float, cap: float
) -> None:
    wait = Backoff(timedelta(seconds=base), factor=factor, cap=timedelta(seconds=cap)).delay(attempt)
    assert timedelta(0) <= wait <= timedelta(seconds=cap)


@pytest.mark.parametrize(("attempts", "exhausted"), [(0, False), (2, False), (3, True), (4, True)])
def test_exhausted__at_the_maximum__is_true(attempts: int, exhausted: bool) -> None:
    assert UNCLASSIFIED.exhausted(attempts) == exhausted

"""Waiting as a value."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.shared.backoff import Backoff, Delays
from domain.shared.work import RECURRENCE, UNCLASSIFIED

MINUTE = timedelta(seconds=60)


def seconds(backoff: Backoff, attempts: int) -> list[float]:
    return [backoff.delay(n).total_seconds() for n in range(attempts)]


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [
        (Backoff(MINUTE), [60, 120, 240, 480, 960, 1_920, 3_600, 3_600]),
        (Backoff(MINUTE, cap=timedelta(seconds=300)), [60, 120, 240, 300, 300]),
        (UNCLASSIFIED, [5, 25, 125, 300, 300]),
        (RECURRENCE, [30, 60, 120]),
        (Backoff(MINUTE, factor=1), [60, 60, 60]),
        (Backoff(timedelta(0)), [0, 0, 0]),
        (Backoff(timedelta(hours=2), cap=MINUTE), [60, 60]),
    ],
)
def test_waits_grow_by_the_factor_up_to_the_cap(backoff: Backoff, waits: list[float]) -> None:
    assert seconds(backoff, len(waits)) == waits


@given(
    st.integers(0, 10**6), st.floats(0.01, 3_600), st.floats(1, 10), st.floats(0, 86_400), st.floats(0, 0.99)
)
def test_no_attempt_however_late_exceeds_the_cap_or_is_negative(
    attempt: int, base: float, factor: float, cap: float, jitter: float
) -> None:
    backoff = Backoff(timedelta(seconds=base), factor=factor, cap=timedelta(seconds=cap), jitter=jitter)
    wait = backoff.delay(attempt)
    assert timedelta(0) <= wait <= timedelta(seconds=cap)


@given(st.integers(0, 3), st.randoms(use_true_random=False))
def test_jitter_spreads_a_wait_by_no_more_than_its_share(attempt: int, chance: random.Random) -> None:
    wait = Backoff(MINUTE, jitter=0.1).delay(attempt, rng=chance).total_seconds()
    middle = 60 * 2**attempt
    assert 0.9 * middle - 1e-6 <= wait <= 1.1 * middle + 1e-6


@pytest.mark.parametrize(("attempts", "exhausted"), [(0, False), (2, False), (3, True), (4, True)])
def test_attempts_are_exhausted_at_their_maximum(attempts: int, exhausted: bool) -> None:
    assert UNCLASSIFIED.exhausted(attempts) == exhausted


def test_three_delays_allow_three_retries_each_with_its_own_wait() -> None:
    delays = Delays((10, 20, 40))
    assert delays.retries == 3
    assert [delays.delay(n) for n in (1, 2, 3)] == [10, 20, 40]


@pytest.mark.parametrize(("retry", "wait"), [(0, 10), (-1, 10), (4, 40), (99, 40)])
def test_outside_the_list_the_nearest_wait_counts(retry: int, wait: float) -> None:
    assert Delays((10, 20, 40)).delay(retry) == wait

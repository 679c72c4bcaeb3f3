"""Ctrl-C in the real command. `make test-chaos` tries twenty random moments; here are a few of the first."""

from __future__ import annotations

import random

import pytest

from tests.chaos.interrupts import interrupt_commands


@pytest.mark.slow
def test_commands__interrupted_at_some_moments__end_within_two_seconds_and_leave_nothing_leased() -> None:
    found = interrupt_commands(random.Random(4), tries=4, seconds=6)
    assert found.complaints == []
    assert found.counts["interrupted"] >= 3

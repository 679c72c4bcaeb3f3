"""Hunts in short, each time with other luck: what they find is printed with the seed that plays it again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hunts import faults, kills
from hunts.house import last_days
from hunts.rounds import Ground, fresh_seed, ground, hunt

pytestmark = pytest.mark.hunt

DAYS = 8


@pytest.fixture(scope="module")
def here() -> Iterator[Ground]:
    with ground(last_days(DAYS)) as made:
        yield made


def test_a_source_that_fails_a_fifth_of_all_calls_costs_time_but_no_row(here: Ground) -> None:
    assert hunt("faults", faults.rounds(here, 1, one_by_one=False), fresh_seed()) == 0


def test_a_command_killed_at_a_random_moment_loses_and_doubles_nothing(here: Ground) -> None:
    assert hunt("kills", {"twice": kills.chain(here, 2)}, fresh_seed()) == 0

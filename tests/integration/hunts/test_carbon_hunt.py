"""Carbon's hunts in short, each time with other luck: uploads at once, while a year is summed, and killed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from hunts.carbon import crowd, landing
from hunts.carbon_ground import CarbonGround, carbon_ground
from hunts.carbon_kills import chain
from hunts.rounds import Found, fresh_seed, hunt

pytestmark = pytest.mark.hunt

PROCESSES = 4


@pytest.fixture
def here() -> Iterator[CarbonGround]:
    with carbon_ground() as made:
        yield made


def test_a_crowd_of_uploads_leaves_the_report_of_all_its_files(here: CarbonGround) -> None:
    def play(luck: random.Random) -> Found:
        return crowd(here, luck, processes=PROCESSES)

    assert hunt("carbon", {"crowd": play}, fresh_seed()) == 0


def test_factors_that_land_while_a_year_is_summed_are_in_its_report(
    here: CarbonGround, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who opens a production instance sets this variable, for Dagster: other tests must not inherit it.
    monkeypatch.setenv("PERENNIAL_DATABASE_URL", postgres_database)
    play = {"landing-postgres": lambda luck: landing(here, luck, postgres_database)}
    assert hunt("carbon", play, fresh_seed()) == 0


def test_whoever_is_killed_leaves_work_that_is_done_in_the_end(here: CarbonGround) -> None:
    assert hunt("carbon", {"killed": lambda luck: chain(2)(here, luck, "")}, fresh_seed()) == 0

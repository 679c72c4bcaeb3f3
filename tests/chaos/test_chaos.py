"""Chaos in short, with fresh choices each time: a line names the seed that plays a round again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

import pytest

from tests.chaos import (
    carbon_kills,
    carbon_races,
    faults,
    full_disk,
    interrupts,
    kills,
    races,
    references_kills,
    unsteady,
)
from tests.chaos.carbon_home import Homes, carbon_homes
from tests.chaos.market_checks import Baseline, baseline
from tests.chaos.rounds import fresh_seed, play_rounds

pytestmark = pytest.mark.chaos


@pytest.fixture(scope="module")
def base() -> Iterator[Baseline]:
    with baseline(8) as made:
        yield made


@pytest.fixture
def homes() -> Iterator[Homes]:
    with carbon_homes() as made:
        yield made


@pytest.fixture
def postgres(postgres_database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    # Opening a production instance sets this variable, for Dagster: other tests must not inherit it.
    monkeypatch.setenv("PERENNIAL_DATABASE_URL", postgres_database)
    return postgres_database


def test_backfill__source_fails_a_fifth_of_all_calls__loses_no_row(base: Baseline) -> None:
    mixed = faults.mixed_round(base, quick=True)
    assert play_rounds("faults", {"mixed": mixed}, fresh_seed()) == 0


def test_backfill__source_fails_a_quarter_or_half_of_all_calls__converges(base: Baseline) -> None:
    assert play_rounds("unsteady", unsteady.rounds(base, 1), fresh_seed()) == 0


def test_backfill__killed_at_random_moments__loses_and_doubles_nothing(base: Baseline) -> None:
    assert play_rounds("kills", {"twice": partial(kills.series, base, 2)}, fresh_seed()) == 0


def test_commands__interrupted_at_random_moments__end_at_once_and_leave_nothing_leased() -> None:
    assert play_rounds("kills", {"ctrl-c": interrupts.series}, fresh_seed()) == 0


def test_backfill__disk_fills_up__names_the_disk_and_heals_later(base: Baseline) -> None:
    rounds = full_disk.rounds(base)
    if not rounds and os.environ.get("CI") != "true":
        pytest.skip("a small disk needs unshare and the right to mount")
    assert rounds
    assert play_rounds("kills", rounds, fresh_seed()) == 0


def test_crowd__on_sqlite__ends_with_the_same_content(base: Baseline) -> None:
    rounds = {"first": partial(races.first, base), "crowd": partial(races.crowd, base)}
    assert play_rounds("races", rounds, fresh_seed()) == 0


def test_crowd__on_postgres__ends_with_the_same_content(base: Baseline, postgres: str) -> None:
    crowd = partial(races.crowd, base, database_url=postgres)
    assert play_rounds("races", {"crowd-postgres": crowd}, fresh_seed()) == 0


def test_uploads__many_at_once__leave_the_report_of_all_files(homes: Homes, postgres: str) -> None:
    rounds = {
        "crowd": partial(carbon_races.crowd, homes, processes=4),
        "crowd-postgres": partial(carbon_races.crowd, homes, database_url=postgres, processes=4),
    }
    assert play_rounds("carbon", rounds, fresh_seed()) == 0


def test_upload__killed_at_random_moments__is_done_in_the_end(homes: Homes) -> None:
    series = partial(carbon_kills.series, homes, length=2)
    assert play_rounds("carbon", {"killed": series}, fresh_seed()) == 0


def test_sync__killed_at_random_moments__loses_and_doubles_no_hand_off(postgres_database: str) -> None:
    rounds = {
        "kills": partial(references_kills.series, 4),
        "kills-postgres": partial(references_kills.series, 4, database_url=postgres_database),
    }
    assert play_rounds("references", rounds, fresh_seed()) == 0

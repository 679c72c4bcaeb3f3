"""Races in short: commands, clicks, upkeep and readers at once over the same days; each time other luck."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hunts.house import last_days
from hunts.races import crowd
from hunts.rounds import Ground, fresh_seed, ground, hunt

pytestmark = pytest.mark.hunt

DAYS = 8


@pytest.fixture(scope="module")
def here() -> Iterator[Ground]:
    with ground(last_days(DAYS)) as made:
        yield made


def test_a_crowd_on_files_ends_with_the_same_content_and_no_reader_fails(here: Ground) -> None:
    assert hunt("races", {"crowd": lambda luck: crowd(here, luck)}, fresh_seed()) == 0


def test_a_crowd_on_postgres_ends_with_the_same_content_and_no_reader_fails(
    here: Ground, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who opens a production instance sets this variable, for Dagster: other tests must not inherit it.
    monkeypatch.setenv("PERENNIAL_DATABASE_URL", postgres_database)
    play = {"crowd-postgres": lambda luck: crowd(here, luck, postgres_database)}
    assert hunt("races", play, fresh_seed()) == 0

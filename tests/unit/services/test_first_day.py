"""The first day of a home: kept as it was given, never moving with the calendar."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from assets.market.tables import weekdays
from domain.shared.error import InvalidInput
from orchestration.domains.market import market_settings, open_market
from orchestration.environments import load_settings
from services.market.first_day import EXCHANGE_OPENED, FILE


def first_day(home: Path, **environ: str) -> date:
    given = {"PERENNIAL_HOME": str(home), "PERENNIAL_NOW": "2026-11-17T18:31", **environ}
    return market_settings(load_settings(given)).market_start


def start(home: Path, **environ: str) -> date:
    """What `perennial up` and every command that writes do first."""
    given = {"PERENNIAL_HOME": str(home), "PERENNIAL_NOW": "2026-11-17T18:31", **environ}
    return open_market(load_settings(given), write=True).rules.first_day


def test_first_day__new_home__is_two_years_before_its_first_day_and_stays(tmp_path: Path) -> None:
    assert start(tmp_path) == date(2024, 11, 1)
    later = first_day(tmp_path, PERENNIAL_NOW="2026-11-19T18:31")
    assert (later, weekdays(later)) == (date(2024, 11, 1), weekdays(date(2024, 11, 1)))
    assert start(tmp_path, PERENNIAL_NOW="2026-11-19T18:31") == later


def test_first_day__given_once__is_kept_until_another_is_given(tmp_path: Path) -> None:
    assert start(tmp_path, PERENNIAL_MARKET_START="2015-01-05") == date(2015, 1, 5)
    assert first_day(tmp_path) == start(tmp_path) == date(2015, 1, 5)
    assert start(tmp_path, PERENNIAL_MARKET_START="2010-01-04") == first_day(tmp_path) == date(2010, 1, 4)


def test_first_day__home_filled_before_homes_kept_one__is_the_day_the_exchange_opened(tmp_path: Path) -> None:
    start(tmp_path)
    (tmp_path / FILE).unlink()
    assert start(tmp_path) == first_day(tmp_path) == EXCHANGE_OPENED


def test_first_day__file_without_a_day__is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("yesterday")
    with pytest.raises(InvalidInput, match="holds no day"):
        first_day(tmp_path)


def test_first_day__filled_home_that_lost_it__read_only_judges_every_recorded_day(tmp_path: Path) -> None:
    start(tmp_path)
    (tmp_path / FILE).unlink()
    given = {"PERENNIAL_HOME": str(tmp_path), "PERENNIAL_NOW": "2026-11-17T18:31"}
    assert open_market(load_settings(given)).rules.first_day == EXCHANGE_OPENED
    assert not (tmp_path / FILE).exists()


def test_first_day__production__is_required_unless_the_home_keeps_it(tmp_path: Path) -> None:
    given = {
        "PERENNIAL_HOME": str(tmp_path),
        "PERENNIAL_ENV": "production",
        "PERENNIAL_DATABASE_URL": "postgresql://u@h/d",
    }
    with pytest.raises(InvalidInput, match="Set PERENNIAL_MARKET_START=2015-01-01"):
        load_settings(given)
    load_settings(given | {"PERENNIAL_DOMAINS": "carbon"})
    day = "2020-01-01"
    assert market_settings(load_settings(given | {"PERENNIAL_MARKET_START": day})).market_start == date(
        2020, 1, 1
    )
    (tmp_path / FILE).write_text(f"{day}\n")
    assert market_settings(load_settings(given)).market_start == date(2020, 1, 1)

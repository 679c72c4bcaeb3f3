"""`market backfill --dry-run` and the ends of a range: what is said, and that nothing is changed."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tests.integration.services.market.market_app import FETCHED, PREPARED, TODAY, MarketApp

PREVIEW = ("market", "backfill", "--dry-run", "--json")


def files(home: Path) -> dict[str, int]:
    """Every file of a home but caches, by when it was changed."""
    return {
        str(path): path.stat().st_mtime_ns
        for path in home.rglob("*")
        if path.is_file() and "cache" not in path.parts and not path.name.endswith(("-shm", "-wal"))
    }


def test_dry_run__days_and_tables_missing__are_named_with_calls_and_nothing_changes(app: MarketApp) -> None:
    app.drop("normalized_daily", PREPARED[1], PREPARED[2])
    app.drop("suspensions", PREPARED[4])
    app.set(TUSHARE_CALLS_PER_MINUTE="2")
    before, calls = files(app.home), app.calls()
    found = app.run(*PREVIEW, "--from", PREPARED[0], "--to", PREPARED[-1]).json
    fetched = {(one["day"], one["table"], one["why"]) for one in found["needed"] if one["table"] in FETCHED}
    assert fetched == {
        (PREPARED[1], "normalized_daily", "missing"),
        (PREPARED[2], "normalized_daily", "missing"),
        (PREPARED[4], "suspensions", "missing"),
    }
    assert (found["trading_days"], found["closed_days"]) == (6, 2)
    assert (found["calls"], found["calls_per_minute"], found["minutes"]) == (4, 2, 1)
    assert (files(app.home), app.calls()) == (before, calls)
    shown = app.run("market", "backfill", "--dry-run", "--from", PREPARED[0], "--to", PREPARED[-1]).out
    assert "3 of 6 trading days need work (2 closed days)" in shown
    assert "at least 4 calls of the source, at 2 a minute: at least 1 min" in shown
    assert [PREPARED[1], PREPARED[2], "2", "normalized_daily", "missing"] in map(
        str.split, shown.splitlines()
    )


def test_dry_run__forced__counts_every_day_of_the_table(app: MarketApp) -> None:
    found = app.run(*PREVIEW, "--force", "--table", "suspensions", "--from", PREPARED[0]).json
    assert (found["calls"], found["calls_per_minute"]) == (2, 1000)
    assert {one["why"] for one in found["needed"]} == {"requested"}


@pytest.mark.parametrize("name", ["suspensions", "market.suspensions"])
def test_dry_run__table_with_namespace_or_without__is_the_same(app: MarketApp, name: str) -> None:
    found = app.run(*PREVIEW, "--force", "--table", name, "--from", TODAY).json
    assert [one["table"] for one in found["needed"]] == ["suspensions", "coverage", "revisions"]


def test_dry_run__new_home__counts_weekdays_and_makes_nothing(empty_app: MarketApp) -> None:
    said = empty_app.run(*PREVIEW, "--from", "2024-09-16")
    assert said.code == 0, said.err
    found = said.json
    assert found["assumed_years"] == [2024]
    # The Mid-Autumn festival is not known yet: 11 weekdays.
    assert (found["trading_days"], found["calls"], found["closed_days"]) == (11, 35, 4)
    assert {(one["table"], one["why"]) for one in found["needed"]} >= set(product(FETCHED, ["missing"]))
    assert (files(empty_app.home), empty_app.calls()) == ({}, 0)


def test_backfill__from_alone__ends_at_the_newest_published_day(app: MarketApp) -> None:
    app.drop("normalized_daily", TODAY)
    said = app.run("market", "backfill", "--from", PREPARED[4], "--json")
    assert said.code == 0, said.err
    assert (said.json["trading_days"], said.json["needed"]) == (2, 1)
    app.at(f"{TODAY}T18:00")
    said = app.run("market", "backfill", "--from", PREPARED[4], "--json")
    assert (said.json["trading_days"], said.json["not_due_yet"]) == (1, 1)


def test_backfill__to_alone__says_what_is_missing(app: MarketApp) -> None:
    said = app.run("market", "backfill", "--to", TODAY)
    assert said.code == 2
    assert f"--from DAY --to {TODAY}" in said.err

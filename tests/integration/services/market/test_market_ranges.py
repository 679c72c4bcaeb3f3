"""Ranges of days of which some fail: the others are done, and each has the events it should have."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

import dagster as dg
import pytest

from assets.policies.tags import ONLY, ONLY_NEEDED
from services.market import backfill
from tests.integration.services.market.market_app import DERIVED, FETCHED, PREPARED, MarketApp

FETCH = "normalized_adj_factor"
WELL, ILL = "2024-09-10", "2024-09-11"
LAST = "2024-09-12"


def test_range_run__day_refused_in_every_pass__is_left_to_the_ledger(app: MarketApp) -> None:
    app.later(minutes=1)
    app.fault("adj_factor", "http_502", day=date.fromisoformat(WELL), times=1)
    app.fault("adj_factor", "partial_day", day=date.fromisoformat(ILL), keep=0.5)
    with app.instance() as instance:
        ended = app.materialize(instance, [FETCH], days=(WELL, ILL))
    assert not ended.success, "a range with a refused day is no success"
    assert app.newest(f"{FETCH}:{WELL}").status == "completed"
    refused = app.newest(f"{FETCH}:{ILL}")
    assert (refused.status, refused.reason_code, refused.attempts) == ("deferred", "incomplete", 1)
    assert app.rows(FETCH, ILL) == 0
    assert app.calls("adj_factor") == 6, "one failed and was repeated, one was refused in four passes"
    [source] = [one for one in app.market.source_freshness() if one.source == "tushare.adj_factor"]
    assert source.last_failure == app.now, "in spite of the other day"


def test_backfill__one_day_incomplete__completes_the_others(app: MarketApp) -> None:
    app.fault("adj_factor", "partial_day", day=date.fromisoformat(ILL), keep=0.5)
    said = app.run("market", "backfill", "--from", WELL, "--to", LAST)
    assert said.code == 1
    for day in (WELL, LAST):
        assert app.rows("adjusted_daily", day) == app.rows("normalized_daily", day) > 0
        assert app.rows("coverage", day) > 0
    assert app.rows("adjusted_daily", ILL) == 0


def test_backfill__one_table_after_the_other__derives_when_the_inputs_are_complete(app: MarketApp) -> None:
    def backfill_of(table: str) -> None:
        said = app.run("market", "backfill", "--from", WELL, "--to", WELL, "--table", table)
        assert said.code == 0, said.err

    backfill_of("normalized_daily")
    assert app.rows("normalized_daily", WELL) > 0
    assert app.work(f"adjusted_daily:{WELL}") == []
    with app.instance() as instance:
        assert WELL not in instance.get_materialized_partitions(_key("adjusted_daily"))
    backfill_of("suspensions")
    backfill_of(FETCH)
    assert app.rows("adjusted_daily", WELL) == app.rows("normalized_daily", WELL)


def test_backfill__first_days_of_the_exchange__fills_them(app: MarketApp) -> None:
    first, last = "1990-12-19", "1990-12-20"
    app.set(PERENNIAL_MARKET_START=first)
    said = app.run("market", "backfill", "--from", first, "--to", last)
    assert said.code == 0, said.err
    for day in (first, last):
        assert app.rows("normalized_daily", day) == app.rows("adjusted_daily", day) > 0


def test_backfill__days_far_apart__runs_each_and_reports_nothing_between(
    app: MarketApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "FAR", 2)
    content = app.content()
    first, *between, last = PREPARED
    app.drop(FETCH, first, last)
    app.fault("adj_factor", "partial_day", day=date.fromisoformat(first), keep=0.5)
    with app.instance() as instance:
        before = [reported(instance, day) for day in between]
        said = app.run("market", "backfill", "--from", first, "--to", last, "--json")
        assert said.code == 1
        assert {piece["day"] for piece in said.json["failed"]} == {first}
        assert app.rows(FETCH, last) > 0, "a run that fails keeps nothing from the next"
        app.expect_healthy()
        said = app.run("market", "backfill", "--from", first, "--to", last)
        assert said.out == "1 of 6 trading days needed work, all whole now (2 closed days)\n"
        assert [reported(instance, day) for day in between] == before
    assert app.content() == content


def test_range_run__some_days_are_complete__only_the_others_have_an_event(app: MarketApp) -> None:
    kept, dropped = PREPARED[:2]
    app.drop(FETCH, dropped)
    with app.instance() as instance:
        before = reported(instance, kept)
        done = app.materialize(instance, [FETCH], days=(kept, dropped), tags={ONLY: ONLY_NEEDED})
        assert reported(instance, kept) == before
        assert events(instance, done.run_id) == {(FETCH, dropped): 1}


def test_range_run__several_tables_and_a_second_pass__every_partition_has_one_event(
    app: MarketApp,
) -> None:
    app.fault("adj_factor", "http_502", day=date.fromisoformat(ILL), times=1)
    tables = (*FETCHED, *DERIVED)
    with app.instance() as instance:
        done = app.materialize(instance, tables, days=(WELL, LAST))
        assert done.success
        days = (WELL, ILL, LAST)
        assert events(instance, done.run_id) == {(table, day): 1 for table in tables for day in days}


def test_range_run__complete_day_unknown_to_dagster__has_an_event(app: MarketApp) -> None:
    """Its event log was lost, say; also if the run fails, as no later run reports the day."""
    kept, dropped = PREPARED[:2]
    app.drop(FETCH, dropped)
    app.fault("adj_factor", "partial_day", day=date.fromisoformat(dropped), keep=0.5)
    with app.instance() as instance:
        instance.wipe_assets([_key(FETCH)])
        app.materialize(instance, [FETCH], days=(kept, dropped), tags={ONLY: ONLY_NEEDED})
        assert instance.get_materialized_partitions(_key(FETCH)) == {kept}


def reported(instance: dg.DagsterInstance, day: str) -> list[dict[str, Any]]:
    """The metadata of all events of a day, oldest first."""
    wanted = dg.AssetRecordsFilter(asset_key=_key(FETCH), asset_partitions=[day])
    records = instance.fetch_materializations(wanted, limit=100, ascending=True).records
    found = [record.asset_materialization for record in records]
    return [{name: value.value for name, value in one.metadata.items()} for one in found if one]


def events(instance: dg.DagsterInstance, run_id: str) -> Counter[tuple[str, str | None]]:
    """How often each partition was materialized in a run, by table and partition."""
    logged = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    found = (entry.dagster_event for entry in logged)
    return Counter(
        (event.asset_key.path[-1], event.partition) for event in found if event and event.asset_key
    )


def _key(table: str) -> dg.AssetKey:
    return dg.AssetKey(["market", table])

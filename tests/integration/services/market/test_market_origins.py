"""A run leaves the same behind if a sensor, a command or a click started it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dagster as dg

from tests.integration.services.market.market_app import DERIVED, FETCHED, TODAY, MarketApp

ALL = (*FETCHED, *DERIVED)


@dataclass(frozen=True)
class Left:
    """What a run left behind for one day."""

    work: set[tuple[str, str, str, str]]
    metadata: dict[str, set[str]]
    row_counts: dict[str, int]
    checks: dict[tuple[str, str], bool]
    aggregates: set[tuple[str, str]]
    content: dict[tuple[str, str], str]


def sensor(app: MarketApp, instance: dg.DagsterInstance) -> None:
    requests = app.tick_sensor(instance, "market_gap_fill_sensor").run_requests
    assert requests
    for request in requests:
        assert request.run_key
        tables = [key.path[-1] for key in request.asset_selection or ()]
        assert app.materialize(instance, tables, request.partition_key, tags=dict(request.tags)).success


def click(app: MarketApp, instance: dg.DagsterInstance) -> None:
    assert app.materialize(instance, ALL, TODAY).success


def command(app: MarketApp, instance: dg.DagsterInstance) -> None:
    assert app.run("market", "heal").code == 0


def left_by(app: MarketApp, start: Callable[[MarketApp, dg.DagsterInstance], None]) -> Left:
    for table in FETCHED:
        app.drop(table, TODAY)
    before = {row.id for row in app.work()}
    with app.instance() as instance:
        runs_before = {run.run_id for run in instance.get_runs()}
        start(app, instance)
        work = {
            (row.kind, row.key, row.status, row.reason_code)
            for row in app.work()
            if row.id not in before and row.key.endswith(TODAY)
        }
        events = {table: newest_materialization(instance, table) for table in ALL}
        evaluations = [
            event.dagster_event.asset_check_evaluation_data
            for run in instance.get_runs()
            if run.run_id not in runs_before
            for event in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
            if event.dagster_event
        ]
    return Left(
        work=work,
        metadata={table: set(event.metadata) for table, event in events.items()},
        row_counts={
            table: event.metadata["dagster/partition_row_count"].value for table, event in events.items()
        },
        checks={(e.asset_key.path[-1], e.check_name): e.passed for e in evaluations if e.partition == TODAY},
        aggregates={(e.asset_key.path[-1], e.check_name) for e in evaluations if e.partition is None},
        content=app.content(),
    )


def newest_materialization(instance: dg.DagsterInstance, table: str) -> Any:
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=dg.AssetKey(["market", table]), asset_partitions=[TODAY]), limit=1
    ).records
    assert records, f"{table} has no materialization of {TODAY}"
    assert records[0].partition_key == TODAY
    return records[0].asset_materialization


def test_run__started_by_click_sensor_or_command__leaves_the_same(app: MarketApp) -> None:
    content = app.content()
    left = left_by(app, click)
    assert left.content == content
    assert left.work == {("market.fill", f"{table}:{TODAY}", "completed", "") for table in ALL}
    assert left.row_counts == {table: app.rows(table, TODAY) for table in ALL}
    reported = {"dagster/partition_row_count", "version", "seconds", "attempts", "reason", "inputs"}
    assert all(reported <= keys for keys in left.metadata.values())
    assert all(
        {"expected", "completeness", "rows_of_recent_days"} <= left.metadata[t]
        for t in FETCHED
        if t != "suspensions"
    )
    assert left.checks == {(table, "whole_day"): True for table in FETCHED}
    assert left.aggregates == {(t, check) for t in FETCHED for check in ("fresh", "unique_key", "whole_day")}
    for start in (sensor, command):
        app.later(minutes=1)
        assert left_by(app, start) == left


def test_sensor__all_healthy__starts_nothing(app: MarketApp) -> None:
    with app.instance() as instance:
        reported = app.tick_sensor(instance, "market_gap_fill_sensor")
    assert reported.run_requests == []
    assert reported.skip_message.startswith("nothing is due: ")


def test_schedule__holiday__says_why_it_starts_nothing(app: MarketApp) -> None:
    app.at("2024-10-01T18:30")
    with app.instance() as instance:
        reported = app.tick_schedule(instance, "market_daily_schedule")
    assert not reported.run_requests
    assert (reported.skip_message or "").startswith("2024-10-01 is a closed day; ")


def test_sensor__its_run_not_started_yet__sends_it_once(app: MarketApp) -> None:
    app.drop("normalized_daily", TODAY)
    with app.instance() as instance:
        first = app.tick_sensor(instance, "market_gap_fill_sensor")
        second = app.tick_sensor(instance, "market_gap_fill_sensor")
    assert [request.partition_key for request in first.run_requests or ()] == [TODAY]
    assert second.run_requests == []

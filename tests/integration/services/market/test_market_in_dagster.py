"""What people see of the market in Dagster's UI: runs, their logs, events, checks, and what is outdated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.instance import DagsterInstance
from dagster._core.loader import LoadingContextForTest
from dagster._core.storage.tags import TagType, get_tag_type

from assets.policies.charts import SHOWN_AT_ONCE
from assets.policies.tags import REASON
from tests.integration.services.market.market_app import FETCHED, PREPARED, TODAY, MarketApp

DAILY = dg.AssetKey(["market", "normalized_daily"])
ADJUSTED = dg.AssetKey(["market", "adjusted_daily"])


@pytest.fixture
def instance(app: MarketApp) -> Iterator[dg.DagsterInstance]:
    with app.instance() as opened:
        yield opened


def heal(app: MarketApp) -> str:
    """Heal by the command; return its newest run."""
    assert app.run("market", "heal").code == 0
    with app.instance() as opened:
        return opened.get_runs(limit=1)[0].run_id


def logged(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    """The lines of a run's log that are ours."""
    return [log.user_message for log in instance.all_logs(run_id) if not log.is_dagster_event]


def newest(instance: dg.DagsterInstance, key: dg.AssetKey, day: str = TODAY) -> Any:
    wanted = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[day])
    return instance.fetch_materializations(wanted, limit=1).records[0].asset_materialization


def test_sensor__two_reasons__its_runs_name_them(app: MarketApp, instance: DagsterInstance) -> None:
    app.drop("normalized_daily", TODAY, PREPARED[-2])
    ticked = app.tick_sensor(instance, "market_gap_fill_sensor")
    reasons = {request.partition_key: request.tags[REASON] for request in ticked.run_requests}
    assert reasons == dict.fromkeys((TODAY, PREPARED[-2]), "gap, input changed")
    for request in ticked.run_requests:
        ours = [name for name in request.tags if get_tag_type(name) != TagType.SYSTEM]
        assert [n for n in ours if get_tag_type(n) == TagType.USER_PROVIDED] == [REASON]
        assert len(ours) <= 3


def test_sensor__nothing_is_due__says_what_it_found(app: MarketApp, instance: DagsterInstance) -> None:
    said = app.tick_sensor(instance, "market_gap_fill_sensor").skip_message
    assert said.startswith("nothing is due: ")
    assert said.endswith(" healthy")
    fresh = app.tick_sensor(instance, "market_freshness_sensor").skip_message
    assert fresh == "all 4 sources are fresh, every day is whole"
    assert "no worker is dead" in app.tick_sensor(instance, "work_sweep_sensor").skip_message


def test_run__of_the_command__belongs_to_the_code_location(app: MarketApp, instance: DagsterInstance) -> None:
    app.drop("normalized_daily", TODAY)
    run = instance.get_run_by_id(heal(app))
    assert run is not None
    assert run.remote_job_origin is not None
    assert run.remote_job_origin.repository_origin.get_label() == "__repository__@perennial"


def test_event__of_a_healed_day__names_reason_rows_version_and_shows_a_plot(
    app: MarketApp, instance: DagsterInstance
) -> None:
    app.drop("normalized_daily", TODAY)
    run_id = heal(app)
    events = [
        event.dagster_event.step_materialization_data.materialization
        for event in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        if event.dagster_event
    ]
    assert [e.asset_key for e in events].count(DAILY) == 1
    shown = {name: value.value for name, value in newest(instance, DAILY).metadata.items()}
    rows = app.rows("normalized_daily", TODAY)
    assert (shown["reason"], shown["dagster/partition_row_count"]) == ("gap", rows)
    assert (shown["expected"], shown["completeness"]) == (rows, 1.0)
    assert len(shown["rows_of_recent_days"]) < SHOWN_AT_ONCE
    assert newest(instance, DAILY).tags["dagster/data_version"] == shown["version"]
    said = logged(instance, run_id)
    assert any(line.startswith(f"make normalized_daily of {TODAY} (gap") for line in said)
    assert any(line.startswith(f"{TODAY}: {rows:,} rows committed in ") for line in said)


def test_source_is_down__the_run_says_so_in_one_line_and_no_check_turns_red(
    app: MarketApp, instance: DagsterInstance
) -> None:
    app.drop("normalized_daily", TODAY)
    app.fault("daily", "http_503")
    done = app.materialize(instance, ["normalized_daily"], TODAY)
    errors = [
        (event.step_retry_data if event.is_step_up_for_retry else event.step_failure_data).error
        for event in done.all_events
        if event.is_step_up_for_retry or event.is_step_failure
    ]
    assert len(errors) == 4
    assert all("HTTP 503" in e.message and "\n" not in e.message.strip() for e in errors)
    assert all(not e.stack and not e.cause for e in errors)
    assert check_states(instance) == {
        (table, name): "SUCCEEDED" for table in FETCHED for name in ("fresh", "unique_key", "whole_day")
    }


def test_source_sends_half_a_day__only_the_check_of_whole_days_is_red(
    app: MarketApp, instance: DagsterInstance
) -> None:
    app.drop("normalized_daily", TODAY)
    app.fault("daily", "partial_day", keep=0.5)
    assert not app.materialize(instance, ["normalized_daily"], TODAY).success
    red = {key for key, status in check_states(instance).items() if status != "SUCCEEDED"}
    assert red == {("normalized_daily", "whole_day")}


def check_states(instance: dg.DagsterInstance) -> dict[tuple[str, str], str]:
    """What the UI shows of each check, by table and name."""
    keys = [
        dg.AssetCheckKey(dg.AssetKey(["market", table]), name)
        for table in FETCHED
        for name in ("fresh", "unique_key", "whole_day")
    ]
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    context = LoadingContextForTest(instance)
    return {(key.asset_key.path[-1], key.name): _resolved(record, context) for key, record in found.items()}


def _resolved(record: Any, context: Any) -> str:
    import asyncio

    return str(asyncio.run(record.resolve_status(context)).value)


def test_outdated__a_day_was_revised__is_what_was_made_from_it_until_it_is_made_again(
    app: MarketApp, instance: DagsterInstance
) -> None:
    def status(key: dg.AssetKey) -> StaleStatus:
        resolver = CachingStaleStatusResolver(
            instance, app.definitions.resolve_asset_graph(), LoadingContextForTest(instance)
        )
        return resolver.get_status(key, TODAY)

    assert app.materialize(instance, [DAILY.path[-1], ADJUSTED.path[-1]], TODAY).success
    assert (status(DAILY), status(ADJUSTED)) == (StaleStatus.FRESH, StaleStatus.FRESH)
    assert app.materialize(instance, [DAILY.path[-1]], TODAY).success
    assert status(ADJUSTED) == StaleStatus.FRESH  # the same content again
    app.fault("daily", "revised_day")
    assert app.materialize(instance, [DAILY.path[-1]], TODAY).success
    assert (status(DAILY), status(ADJUSTED)) == (StaleStatus.FRESH, StaleStatus.STALE)
    assert app.materialize(instance, [ADJUSTED.path[-1]], TODAY).success
    assert status(ADJUSTED) == StaleStatus.FRESH

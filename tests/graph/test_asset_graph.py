"""The asset graph is what it was when somebody last looked at it, and every asset says what it is."""

from __future__ import annotations

import difflib
from collections import Counter

import dagster as dg
import pytest

from domain.carbon.jobs import FEED_ENTRIES, INBOX_FILES, JOBS, KIND_OF
from domain.shared.table import Table
from orchestration import registry
from orchestration.environments import load_settings
from tests.graph.picture import PICTURE, UPDATE, definitions, draw

WITHOUT_TABLE = {
    *(dg.AssetKey(["ops", name]) for name in ("lake_maintenance", "run_retention", "upload_retention")),
    *(dg.AssetKey(["carbon", name]) for name in (INBOX_FILES, FEED_ENTRIES)),
}
"""Assets that write no table: upkeep, and what is read from applications and the inbox."""


def tables() -> tuple[Table, ...]:
    return registry.tables(load_settings({}))


@pytest.fixture(scope="module")
def defs() -> dg.Definitions:
    return definitions()


@pytest.fixture(scope="module")
def graph(defs: dg.Definitions) -> dg.AssetGraph:
    return defs.resolve_asset_graph()


def specs(defs: dg.Definitions) -> dict[dg.AssetKey, dg.AssetSpec]:
    return {spec.key: spec for spec in defs.resolve_all_asset_specs()}


def test_the_graph_is_as_reviewed(defs: dg.Definitions) -> None:
    was, now = PICTURE.read_text(encoding="utf-8"), draw(defs)
    difference = "\n".join(
        difflib.unified_diff(was.splitlines(), now.splitlines(), "reviewed", "now", lineterm="", n=4)
    )
    if difference:
        pytest.fail(
            f"the asset graph has changed; if that is meant, run `{UPDATE}`\n{difference}", pytrace=False
        )


def test_every_lake_table_has_exactly_one_writer(defs: dg.Definitions) -> None:
    written = Counter(
        spec.metadata["dagster/table_name"] for key, spec in specs(defs).items() if key not in WITHOUT_TABLE
    )
    assert written == {table.name: 1 for table in tables()}


def test_every_kind_of_carbon_work_chains_to_what_is_made_of_its_result(defs: dg.Definitions) -> None:
    """The registry of jobs and the asset graph say the same."""
    follows = {job.kind: set(job.chains_to) for job in JOBS}
    found: dict[str, set[str]] = {job.kind: set() for job in JOBS}
    for key, spec in specs(defs).items():
        if key.path[-1] not in KIND_OF:
            continue  # written beside another table, by the same work
        above = {KIND_OF[dep.asset_key.path[1]] for dep in spec.deps if dep.asset_key.path[0] == "carbon"}
        for kind in above - {KIND_OF[key.path[1]]}:
            found[kind].add(KIND_OF[key.path[1]])
    asked = "carbon.module_emission_recalc"
    assert follows.pop(asked) == {"carbon.emission_recalc"}, "it asks, and makes nothing by itself"
    del found[asked]
    # Entries are checked against the units of their year; new units change their reports, not them.
    found["carbon.unit_sync"].discard("carbon.csv_ingest")
    assert found == follows


def test_an_asset_has_the_name_of_its_table(defs: dg.Definitions) -> None:
    named = {k: s.metadata["dagster/table_name"] for k, s in specs(defs).items() if k not in WITHOUT_TABLE}
    assert named == {key: ".".join(key.path) for key in named}


def test_every_asset_shows_what_people_look_for_in_a_catalogue(defs: dg.Definitions) -> None:
    for key, spec in specs(defs).items():
        assert spec.description, key
        assert spec.group_name == key.path[0] or spec.group_name, key
        assert spec.owners, key
        assert spec.kinds, key
        if key in WITHOUT_TABLE:
            continue
        schema = spec.metadata["dagster/column_schema"]
        assert schema.columns, key
        assert all(column.description for column in schema.columns), key
        assert spec.metadata["primary_key"], key


def test_columns_that_measure_something_name_their_unit(defs: dg.Definitions) -> None:
    """A number that is no key, no year and no count of things stands for nothing without its unit."""
    for table in tables():
        for column in table.columns:
            if str(column.type) in ("double", "float"):
                assert column.unit, f"{table.name}.{column.name}"


def test_no_dependency_is_mistyped(graph: dg.AssetGraph) -> None:
    """A dependency on a key nobody makes becomes a node that cannot be run, silently."""
    made = graph.materializable_asset_keys
    assert {key.to_user_string() for key in graph.get_all_asset_keys() - made} == set()


def test_everything_that_heals_is_on_from_the_start(defs: dg.Definitions) -> None:
    off = [
        automation.name
        for automation in (*(defs.sensors or ()), *(defs.schedules or ()))
        if automation.default_status.value != "RUNNING"
    ]
    assert off == []


def test_sensors_run_no_oftener_than_the_daemon(defs: dg.Definitions) -> None:
    assert all((s.minimum_interval_seconds or 0) >= 5 for s in defs.sensors or ())


def test_what_is_fetched_is_throttled_and_retried(graph: dg.AssetGraph, defs: dg.Definitions) -> None:
    fetched = [key for key, spec in specs(defs).items() if "tushare" in spec.kinds]
    assert len(fetched) >= 6
    for key in fetched:
        assert graph.get(key).pools == {"tushare"}, key
        assert defs.resolve_assets_def(key).op.retry_policy, key


def test_a_range_of_days_is_one_run(graph: dg.AssetGraph) -> None:
    by_day = [
        node for node in graph.asset_nodes if isinstance(node.partitions_def, dg.DailyPartitionsDefinition)
    ]
    assert len(by_day) >= 7
    for node in by_day:
        assert node.backfill_policy == dg.BackfillPolicy.single_run(), node.key


def test_names_say_what_things_are(defs: dg.Definitions) -> None:
    assert all(sensor.name.endswith("_sensor") for sensor in defs.sensors or ())
    assert all(schedule.name.endswith("_schedule") for schedule in defs.schedules or ())


def test_everything_can_be_loaded(defs: dg.Definitions) -> None:
    dg.Definitions.validate_loadable(defs)

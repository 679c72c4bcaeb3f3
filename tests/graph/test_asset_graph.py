"""The asset graph is the reviewed one, and every asset describes itself."""

from __future__ import annotations

import difflib
from collections import Counter

import dagster as dg
import pytest

from domain.carbon.feeds import FEED_TABLES
from domain.carbon.jobs import (
    AGGREGATION,
    API_INGEST,
    DATA_INGEST,
    FACTOR_INGEST,
    FILE_INGEST,
    INBOX_FILES,
    JOBS,
    KIND_OF,
    MODULE_RECALCULATION,
    PRIORITY,
    RECALCULATION,
    UNIT_SYNC,
)
from domain.shared.table import Table
from orchestration import registry
from orchestration.environments import load_settings
from tests.graph.picture import PICTURE, UPDATE, definitions, draw

WITHOUT_TABLE = {
    *(
        dg.AssetKey(["ops", name])
        for name in ("lake_maintenance", "run_retention", "scrape_retention", "upload_retention")
    ),
    dg.AssetKey(["refs", "handoffs"]),
    *(dg.AssetKey(["carbon", name]) for name in (INBOX_FILES, *FEED_TABLES.values())),
}
"""Assets that write no table: upkeep, hand-offs, and what is read from applications and the inbox."""


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


def test_graph__all_domains__is_as_reviewed(defs: dg.Definitions) -> None:
    was, now = PICTURE.read_text(encoding="utf-8"), draw(defs)
    difference = "\n".join(
        difflib.unified_diff(was.splitlines(), now.splitlines(), "reviewed", "now", lineterm="", n=4)
    )
    if difference:
        pytest.fail(
            f"the asset graph has changed; if that is meant, run `{UPDATE}`\n{difference}", pytrace=False
        )


def test_tables__of_the_lake__have_one_writer_each(defs: dg.Definitions) -> None:
    written = Counter(
        spec.metadata["dagster/table_name"] for key, spec in specs(defs).items() if key not in WITHOUT_TABLE
    )
    assert written == {table.name: 1 for table in tables()}


CHAINS = {
    FILE_INGEST: {UNIT_SYNC, FACTOR_INGEST, DATA_INGEST},
    UNIT_SYNC: {AGGREGATION},
    FACTOR_INGEST: {RECALCULATION},
    API_INGEST: {DATA_INGEST},
    DATA_INGEST: {RECALCULATION},
    RECALCULATION: {AGGREGATION},
    AGGREGATION: set(),
}
"""By kind of work, the kinds that its result may make due."""


def test_kinds__of_carbon__chain_to_their_consumers(defs: dg.Definitions) -> None:
    found: dict[str, set[str]] = {job.kind: set() for job in JOBS}
    for key, spec in specs(defs).items():
        if key.path[-1] not in KIND_OF:
            continue  # written with another table, by the same work
        above = {KIND_OF[dep.asset_key.path[1]] for dep in spec.deps if dep.asset_key.path[0] == "carbon"}
        for kind in above - {KIND_OF[key.path[1]]}:
            found[kind].add(KIND_OF[key.path[1]])
    assert not found.pop(MODULE_RECALCULATION), "it asks, and makes nothing by itself"
    # Entries are checked against the units of their year; new units change their reports, not them.
    found[UNIT_SYNC].discard(DATA_INGEST)
    assert found == CHAINS
    assert all(PRIORITY[kind] >= PRIORITY[later] for kind, chain in CHAINS.items() for later in chain)


def test_assets__with_a_table__have_its_name(defs: dg.Definitions) -> None:
    named = {k: s.metadata["dagster/table_name"] for k, s in specs(defs).items() if k not in WITHOUT_TABLE}
    assert named == {key: ".".join(key.path) for key in named}


def test_assets__in_the_catalogue__have_description_owner_and_kinds(defs: dg.Definitions) -> None:
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


def test_columns__that_measure__name_their_unit(defs: dg.Definitions) -> None:
    """A number that is no key, no year and no count of things stands for nothing without its unit."""
    for table in tables():
        for column in table.columns:
            if str(column.type) in ("double", "float"):
                assert column.unit, f"{table.name}.{column.name}"


def test_dependencies__of_assets__exist(graph: dg.AssetGraph) -> None:
    """A dependency on a key nobody makes becomes a node that cannot be run, silently."""
    made = graph.materializable_asset_keys
    assert {key.to_user_string() for key in graph.get_all_asset_keys() - made} == set()


def test_sensors_and_schedules__at_the_start__are_running(defs: dg.Definitions) -> None:
    off = [
        automation.name
        for automation in (*(defs.sensors or ()), *(defs.schedules or ()))
        if automation.default_status.value != "RUNNING"
    ]
    assert off == []


def test_sensors__interval__is_not_below_the_daemons(defs: dg.Definitions) -> None:
    assert all((s.minimum_interval_seconds or 0) >= 5 for s in defs.sensors or ())


def test_assets__that_fetch__have_a_pool(graph: dg.AssetGraph, defs: dg.Definitions) -> None:
    fetched = [key for key, spec in specs(defs).items() if "tushare" in spec.kinds]
    assert len(fetched) >= 6
    for key in fetched:
        assert graph.get(key).pools == {"tushare"}, key


def test_assets__range_of_days__is_one_run(graph: dg.AssetGraph) -> None:
    by_day = [
        node for node in graph.asset_nodes if isinstance(node.partitions_def, dg.DailyPartitionsDefinition)
    ]
    assert len(by_day) >= 7
    for node in by_day:
        assert node.backfill_policy == dg.BackfillPolicy.single_run(), node.key


def test_names__of_sensors_and_schedules__end_in_their_kind(defs: dg.Definitions) -> None:
    assert all(sensor.name.endswith("_sensor") for sensor in defs.sensors or ())
    assert all(schedule.name.endswith("_schedule") for schedule in defs.schedules or ())


def test_definitions__all_domains__are_loadable(defs: dg.Definitions) -> None:
    dg.Definitions.validate_loadable(defs)

"""A fingerprint stands for the reason of a work request: the ledger tries again when it changes."""

from __future__ import annotations

import pytest

from domain.carbon.jobs import ASKED, FEED_ENTRIES, INBOX_FILES, JOBS, KIND_OF, PRIORITY
from domain.carbon.pipelines import PHASES
from domain.carbon.tables import TABLES
from domain.shared.verdict import Verdict
from tests.unit.domain.carbon.world import (
    ENTRIES,
    MASSES,
    MODULES,
    REPORT,
    TREE,
    TYPES,
    VALUES,
    World,
    a_catalogue,
)

PLANE = "plane|2025"


@pytest.fixture
def world() -> World:
    return World.reported()


def request(world: World, table: str, partition: str) -> Verdict:
    verdict = world.verdict(table, partition)
    assert verdict.due
    return verdict


@pytest.mark.parametrize(
    ("what", "table", "partition"),
    [("units", TREE, "2025"), ("factors", VALUES, "2025"), ("plane", ENTRIES, PLANE)],
)
def test_work_that_failed_is_asked_for_again_when_a_file_came(
    world: World, what: str, table: str, partition: str
) -> None:
    world.upload(what, says={"plane": 2})
    first = request(world, table, partition).fingerprint
    world.upload(what, says={"plane": 3})
    assert request(world, table, partition).fingerprint != first


def test_a_calculation_that_failed_is_asked_for_again_when_entries_factors_or_formula_are_others(
    world: World,
) -> None:
    prints = []
    for change in ("factors", "plane", "formula"):
        if change == "formula":
            world.catalogue = a_catalogue(changed=frozenset({"plane"}))
        else:
            world.upload(change, says={"plane": 2})
        table, partition = (VALUES, "2025") if change == "factors" else (ENTRIES, PLANE)
        world.work(world.verdict(table, partition))
        prints.append(request(world, MASSES, PLANE).fingerprint)
    assert len(set(prints)) == 3


def test_a_report_that_failed_is_asked_for_again_when_another_type_was_recalculated(world: World) -> None:
    prints = []
    for name in TYPES:
        world.upload(name, says="corrected")
        world.work(world.verdict(ENTRIES, f"{name}|2025"))
        world.work(world.verdict(MASSES, f"{name}|2025"))
        prints.append(request(world, REPORT, "2025").fingerprint)
    assert len(set(prints)) == 3


def test_what_the_work_is_doing_does_not_change_the_reason(world: World) -> None:
    world.edit(MASSES, PLANE)
    first = request(world, MASSES, PLANE)
    for status in ("queued", "running", "deferred", "failed"):
        world.statuses[first.key] = status
        assert request(world, MASSES, PLANE) == first
    world.refused.add(first.key)
    assert request(world, MASSES, PLANE) == first


def test_it_speaks_of_each_partition_once_and_upstream_first(world: World) -> None:
    keys = [v.key for v in world.plan.verdicts]
    assert len(keys) == len(set(keys))
    order = [verdict.table for verdict in world.plan.verdicts]
    assert [t for n, t in enumerate(order) if t not in order[:n]] == [
        TREE, VALUES, ENTRIES, MASSES, MODULES, REPORT,
    ]  # fmt: skip


def test_an_item_says_what_is_to_be_done_for_whom_and_why(world: World) -> None:
    one = world.upload("plane", says="corrected")
    verdict = world.verdict(ENTRIES, PLANE)
    item = verdict.request
    assert (item.kind, item.key) == ("carbon.csv_ingest", f"{ENTRIES}:{PLANE}")
    assert (item.fingerprint, item.reason_code) == (verdict.fingerprint, "uploaded")
    assert (item.priority, item.pipelines) == (PRIORITY[item.kind], (one.pipeline_id,))


def test_files_go_before_calculations_and_these_before_sums() -> None:
    for job in JOBS:
        for following in job.chains_to:
            assert job.priority >= PRIORITY[following], (job.kind, following)
    by_phase = {phase: {job.priority for job in JOBS if job.phase == phase} for phase in PHASES}
    assert min(by_phase["data"]) > max(by_phase["emissions"])
    assert min(by_phase["emissions"]) > max(by_phase["aggregation"])


def test_every_table_but_the_history_of_factors_has_a_kind_of_work() -> None:
    assert set(KIND_OF) == {t.table for t in TABLES} - {"factor_versions"} | {
        FEED_ENTRIES,
        ASKED,
        INBOX_FILES,
    }

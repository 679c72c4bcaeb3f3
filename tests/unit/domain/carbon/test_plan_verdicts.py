"""The verdict on a partition of carbon: its state, its reason code, and what its fingerprint covers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.carbon.feeds import FEED_TABLES
from domain.carbon.health import findings
from domain.carbon.jobs import ASKED, INBOX_FILES, JOBS, KIND_OF, PRIORITY
from domain.carbon.pipelines import PHASES
from domain.carbon.plan import plan
from domain.carbon.tables import TABLES
from domain.shared.verdict import Verdict
from tests.unit.domain.carbon.world import (
    ENTRIES,
    MASSES,
    MODULES,
    NOON,
    PAST,
    REPORT,
    TREE,
    TYPES,
    VALUES,
    World,
    a_catalogue,
)

PLANE, TRAIN, TRAVEL = "plane|2025", "train|2025", "travel|2025"
FILLED = [(TREE, "2025", "units"), (VALUES, "2025", "factors"), (ENTRIES, PLANE, "plane")]
PARTITIONS = {
    TREE: "2025",
    VALUES: "2025",
    PAST: "2025",
    ENTRIES: PLANE,
    MASSES: PLANE,
    MODULES: TRAVEL,
    REPORT: "2025",
}


@pytest.fixture
def world() -> World:
    return World.reported(2024, 2025)


@pytest.fixture
def halfway(world: World) -> World:
    """Two types were to be recalculated; one is, and the other is due."""
    world.upload("factors", says={"plane": 2, "train": 2})
    world.work(world.verdict(VALUES))
    world.work(world.verdict(MASSES, PLANE))
    return world


def judged(world: World, table: str, partition: str = "2025") -> tuple[str, str]:
    verdict = world.verdict(table, partition)
    return verdict.state, verdict.reason_code


def import_upload(world: World, what: str, *years: int, **more: object) -> None:
    """An upload, and what imports it; nothing that follows from it."""
    world.upload(what, *years, **more)
    for verdict in world.plan.due:
        world.work(verdict)


def recalculated(world: World) -> set[str]:
    return {v.partition for v in world.plan.due if v.table == MASSES}


def sums(world: World) -> set[str]:
    """The states of the unhealthy sums of 2025; `due` if they are."""
    return {state for key, state in world.judged().items() if "carbon_report" in key}


@pytest.mark.parametrize("table", PARTITIONS)
@pytest.mark.parametrize(
    ("how", "expected"), [("lose", "missing"), ("corrupt", "corrupt"), ("edit", "changed")]
)
def test_plan__partition_differs_from_its_record__is_made_again_unless_locked(
    world: World, table: str, how: str, expected: str
) -> None:
    partition = PARTITIONS[table]
    before = world.contents[table, partition]
    getattr(world, how)(table, partition)
    shown = VALUES if table == PAST else table  # they are written together
    assert world.due() == {f"{shown}:{partition}"}
    assert judged(world, shown, partition) == (expected, expected)
    assert world.verdict(shown, partition).pipelines == (), "no upload is behind it"
    world.locked[2025] = "published in May"
    assert judged(world, shown, partition) == ("waiting", "year_locked")
    assert world.due() == set()
    world.locked.clear()
    world.settle()
    assert world.judged() == {}
    assert world.contents[table, partition] == before


def test_plan__any_world__has_one_verdict_for_each_partition_upstream_first(world: World) -> None:
    keys = [v.key for v in world.plan.verdicts]
    assert len(keys) == len(set(keys))
    assert list(dict.fromkeys(v.table for v in world.plan.verdicts)) == [
        TREE, VALUES, ENTRIES, MASSES, MODULES, REPORT,
    ]  # fmt: skip


# Uploads and the partitions that are made from them


@pytest.mark.parametrize(("table", "partition", "what"), FILLED)
def test_plan__upload__makes_only_its_partition_stale(
    world: World, table: str, partition: str, what: str
) -> None:
    one = world.upload(what, says={"plane": 2})
    assert world.due() == {f"{table}:{partition}"}
    first = world.verdict(table, partition)
    assert (first.state, first.reason_code, first.pipelines) == ("stale", "uploaded", (one.pipeline_id,))
    assert first.request is not None
    assert (first.request.kind, first.request.reason_code) == (KIND_OF[table], "uploaded")
    assert (first.request.priority, first.request.pipelines) == (PRIORITY[KIND_OF[table]], first.pipelines)
    world.upload(what, says={"plane": 3})
    second = world.verdict(table, partition)
    assert second.fingerprint != first.fingerprint, "work that failed is requested again"
    world.work(second, dies=True)
    assert judged(world, table, partition) == ("changed", "changed")
    assert world.verdict(table, partition).pipelines, "the upload still waits"


def test_plan__upload_of_several_years__makes_each_due_and_no_other() -> None:
    world = World()
    world.upload("plane", 2023, 2024)
    world.upload("units", 2023, 2024)
    assert world.due() == {f"{ENTRIES}:plane|2023", f"{ENTRIES}:plane|2024", "units:2023", "units:2024"}
    assert judged(world, TREE, "2023") == ("missing", "uploaded")
    world.settle()
    world.upload("plane", 2024, says="corrected")
    assert world.due() == {f"{ENTRIES}:plane|2024"}


def test_plan__two_uploads_of_a_scope__newest_counts(world: World) -> None:
    world.upload("plane", says="first")
    newest = world.upload("plane", says="second")
    assert world.verdict(ENTRIES, PLANE).pipelines == (newest.pipeline_id,)
    world.settle()
    assert world.contents[ENTRIES, PLANE] == ["second"]


def test_plan__type_removed_from_catalogue__its_entries_are_uncounted(world: World) -> None:
    world.catalogue = a_catalogue(lost=frozenset({"train"}))
    assert {f"{table}:{part}" for table, part in ((MODULES, TRAVEL), (REPORT, "2025"))} < world.due()
    world.settle()
    assert judged(world, ENTRIES, TRAIN) == ("waiting", "uncounted")
    assert world.contents[REPORT, "2025"].keys() == {"plane", "power"}
    assert world.contents[MASSES, TRAIN]
    found = findings(world.plan, (), NOON, NOON)
    assert {(f.subject, f.health) for f in found} == {
        (f"{ENTRIES}:train|{year}", "explained") for year in (2024, 2025)
    }


@pytest.mark.parametrize(("table", "partition", "what"), FILLED)
def test_plan__uploads_deleted_from_ledger__change_nothing(
    world: World, table: str, partition: str, what: str
) -> None:
    """A database may be restored, or cleaned by hand."""
    world.upload(what, says={"power": 2}, institution="hospital")
    world.settle()
    world.forget_upload(world.uploads[0])
    assert world.judged() == {}
    world.forget_upload(*world.uploads)
    assert world.judged() == {}
    world.upload("factors", says={"plane": 5})
    world.settle()
    assert world.contents[VALUES, "2025"].keys() == {"plane", "train", "power"}


def test_plan__corrupt_without_upload__waits_for_one(world: World) -> None:
    world.forget_upload(*world.uploads)
    world.corrupt(ENTRIES, PLANE)
    assert judged(world, ENTRIES, PLANE) == ("waiting", "no_files")
    assert world.due() == set()
    world.upload("plane", says="once more")
    world.settle()
    assert world.judged() == {}


def test_plan__uploads_not_indexed__imports_wait(world: World) -> None:
    world.lose(ENTRIES, PLANE)
    verdicts = plan(world.catalogue, replace(world.observed, not_indexed=3)).verdicts
    [verdict] = [v for v in verdicts if v.key == f"{ENTRIES}:{PLANE}"]
    assert (verdict.state, verdict.reason_code) == ("waiting", "not_indexed")


# Emissions: exactly the types whose entries, factors or formula changed


@pytest.mark.parametrize("changed", [("plane",), ("train", "power"), TYPES])
def test_plan__new_factors__recalculate_their_types(world: World, changed: tuple[str, ...]) -> None:
    import_upload(world, "factors", says=dict.fromkeys(changed, 2))
    assert world.due() == {f"{MASSES}:{name}|2025" for name in changed}
    assert judged(world, MASSES, f"{changed[0]}|2025") == ("stale", "inputs_changed")


def test_plan__type_without_factors__is_calculated_again_when_it_gets_some() -> None:
    world = World()
    world.upload("plane")
    world.settle()
    assert world.states[MASSES, PLANE].inputs["factors"] == "none"
    import_upload(world, "factors", says={"train": 1})
    assert recalculated(world) == set()
    import_upload(world, "factors", says={"plane": 1})
    assert recalculated(world) == {PLANE}


def test_plan__formula_edited__recalculates_all_and_imports_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("domain.carbon.plan.FORMULA", "SELECT another formula")
    assert world.due() == {f"{MASSES}:{name}|{year}" for name in TYPES for year in (2024, 2025)}
    assert judged(world, MASSES, PLANE) == ("stale", "rules_changed")
    world.edit(MASSES, PLANE)
    assert judged(world, MASSES, PLANE) == ("stale", "rules_changed"), "as versions counted otherwise"


def test_plan__factors_without_record__are_not_calculated_with() -> None:
    world = World()
    world.upload("plane")
    world.work(world.verdict(ENTRIES, PLANE))
    one = world.upload("factors", says={"plane": 1})
    world.work(world.verdict(VALUES), dies=True)
    assert recalculated(world) == set()
    world.work(world.verdict(VALUES))
    assert one.pipeline_id in world.verdict(MASSES, PLANE).pipelines


# Reports: summed once nothing of the year is about to change


def test_plan__recalculation_changes_nothing__sums_nothing(world: World) -> None:
    world.edit(MASSES, PLANE)
    world.work(world.verdict(MASSES, PLANE))
    assert world.judged() == {}


@pytest.mark.parametrize(
    ("status", "refused", "expected"),
    [
        (None, False, "waiting"),
        ("queued", False, "waiting"),
        ("running", False, "waiting"),
        ("deferred", False, "due"),
        ("failed", True, "due"),
        (None, True, "due"),  # cancelled: an observation does not say so
    ],
)
def test_plan__calculation_of_a_type_is_due__report_waits_unless_it_is_put_off(
    halfway: World, status: str | None, refused: bool, expected: str
) -> None:
    key = f"{MASSES}:{TRAIN}"
    if status:
        halfway.statuses[key] = status
    halfway.refused |= {key} if refused else set()
    assert sums(halfway) == {expected}
    assert halfway.verdict(MASSES, TRAIN).due


@pytest.mark.parametrize("status", ["queued", "running"])
def test_plan__finished_calculation_is_requested_again__report_waits(halfway: World, status: str) -> None:
    halfway.work(halfway.verdict(MASSES, TRAIN))
    halfway.statuses[f"{MASSES}:{TRAIN}"] = status
    assert sums(halfway) == {"waiting"}


@pytest.mark.parametrize("what", ["units", "factors", "plane"])
def test_plan__upload_waits__report_waits(world: World, what: str) -> None:
    world.edit(REPORT)
    world.upload(what, says={"power": 9})
    assert judged(world, REPORT) == ("waiting", "changed")


@pytest.mark.parametrize("how", ["lose", "corrupt"])
def test_plan__emissions_lost__report_waits_even_if_deferred(world: World, how: str) -> None:
    """The report as it was says more than one without the type."""
    import_upload(world, "train", says="corrected")
    world.work(world.verdict(MASSES, TRAIN))
    getattr(world, how)(MASSES, PLANE)
    world.statuses[f"{MASSES}:{PLANE}"] = "deferred"
    assert sums(world) == {"waiting"}
    world.settle()
    assert world.judged() == {}


def test_plan__year_without_emissions__has_no_report() -> None:
    world = World()
    world.upload("units")
    world.upload("factors", says=dict.fromkeys(TYPES, 1))
    world.settle()
    assert {v.table for v in world.plan.verdicts} == {TREE, VALUES}


# Fingerprints: work that failed is requested again when they change.


def request(world: World, table: str, partition: str) -> Verdict:
    verdict = world.verdict(table, partition)
    assert verdict.due
    return verdict


def test_fingerprint__entries_factors_or_formula_change__emissions_have_another(world: World) -> None:
    import_upload(world, "factors", says={"plane": 2})
    prints = {request(world, MASSES, PLANE).fingerprint}
    world.upload("plane", says="more")
    world.work(world.verdict(ENTRIES, PLANE))
    prints.add(request(world, MASSES, PLANE).fingerprint)
    world.catalogue = a_catalogue(changed=frozenset({"plane"}))
    world.work(world.verdict(ENTRIES, PLANE))
    prints.add(request(world, MASSES, PLANE).fingerprint)
    assert len(prints) == 3


def test_fingerprint__another_type_recalculated__report_has_another(world: World) -> None:
    prints = set()
    for name in TYPES:
        import_upload(world, name, says="corrected")
        world.work(world.verdict(MASSES, f"{name}|2025"))
        prints.add(request(world, REPORT, "2025").fingerprint)
    assert len(prints) == len(TYPES)


def test_fingerprint__status_of_its_work_changes__is_the_same(world: World) -> None:
    world.edit(MASSES, PLANE)
    first = request(world, MASSES, PLANE)
    for status in ("queued", "running", "deferred", "failed"):
        world.statuses[first.key] = status
        assert request(world, MASSES, PLANE) == first
    world.refused.add(first.key)
    assert request(world, MASSES, PLANE) == first


# Kinds of work


def test_jobs__files_go_before_calculations_and_these_before_sums() -> None:
    by_phase = {phase: {job.priority for job in JOBS if job.phase == phase} for phase in PHASES}
    assert min(by_phase["data"]) > max(by_phase["emissions"])
    assert min(by_phase["emissions"]) > max(by_phase["aggregation"])


def test_jobs__every_table_but_factor_versions__has_a_kind() -> None:
    tables = {t.table for t in TABLES} - {"factor_versions"}
    assert set(KIND_OF) == tables | {*FEED_TABLES.values(), ASKED, INBOX_FILES}

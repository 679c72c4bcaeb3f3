"""Files and the partitions they fill: what makes one due, and what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.carbon.health import findings
from domain.carbon.plan import plan
from tests.unit.domain.carbon.world import (
    ENTRIES,
    NOON,
    PAST,
    TREE,
    VALUES,
    World,
    a_catalogue,
)

PLANE = "plane|2025"
FILLED = [(TREE, "2025", "units"), (VALUES, "2025", "factors"), (ENTRIES, PLANE, "plane")]


@pytest.fixture
def world() -> World:
    return World.reported()


@pytest.mark.parametrize(("table", "partition", "what"), FILLED)
def test_plan__upload__makes_only_its_partition_due(
    world: World, table: str, partition: str, what: str
) -> None:
    one = world.upload(what, says={"plane": 2})
    assert world.due() == {f"{table}:{partition}"}
    verdict = world.verdict(table, partition)
    assert (verdict.state, verdict.reason_code) == ("stale", "uploaded")
    assert verdict.pipelines == (one.pipeline_id,)


def test_plan__upload_of_several_years__makes_each_due() -> None:
    world = World()
    world.upload("plane", 2023, 2024)
    world.upload("units", 2023, 2024)
    assert world.due() == {f"{ENTRIES}:plane|2023", f"{ENTRIES}:plane|2024", "units:2023", "units:2024"}


def test_plan__newer_upload_of_one_year__leaves_other_years() -> None:
    world = World()
    world.upload("plane", 2023, 2024)
    world.upload("factors", 2023, 2024, says={"plane": 1})
    world.settle()
    world.upload("plane", 2024, says="corrected")
    assert world.due() == {f"{ENTRIES}:plane|2024"}


def test_plan__two_uploads_of_a_scope__newest_counts(world: World) -> None:
    world.upload("plane", says="first")
    newest = world.upload("plane", says="second")
    assert world.verdict(ENTRIES, PLANE).pipelines == (newest.pipeline_id,)
    world.settle()
    assert world.contents[ENTRIES, PLANE] == ["second"]


@pytest.mark.parametrize(("table", "partition", "what"), [*FILLED, (PAST, "2025", "factors")])
@pytest.mark.parametrize("damage", ["lose", "damage", "edit"])
def test_plan__imported_partition_corrupt__is_imported_again(
    world: World, table: str, partition: str, what: str, damage: str
) -> None:
    before = world.contents[table, partition]
    getattr(world, damage)(table, partition)
    key = f"{VALUES if table == PAST else table}:{partition}"
    assert world.due() == {key}
    [verdict] = world.plan.due
    assert verdict.reason_code == {"lose": "missing", "damage": "corrupt", "edit": "changed"}[damage]
    assert verdict.pipelines == (), "no chain is behind it"
    world.work(verdict)
    assert world.judged() == {}
    assert world.contents[table, partition] == before


@pytest.mark.parametrize(("table", "partition", "what"), FILLED)
def test_plan__committed_without_record__is_imported_again(
    world: World, table: str, partition: str, what: str
) -> None:
    one = world.upload(what, says={"plane": 2})
    world.work(world.verdict(table, partition), dies=True)
    verdict = world.verdict(table, partition)
    assert (verdict.due, verdict.reason_code) == (True, "changed")
    assert verdict.pipelines == (one.pipeline_id,), "the file still waits"


def test_findings__type_removed_from_catalogue__entries_are_explained(world: World) -> None:
    """The next report is smaller. Whoever took the type away meant it; whoever reads the report is told."""
    world.catalogue = a_catalogue(lost=frozenset({"plane"}))
    [verdict] = [v for v in world.plan.verdicts if "plane" in v.partition]
    assert (verdict.key, verdict.state, verdict.reason_code) == (
        f"{ENTRIES}:{PLANE}",
        "waiting",
        "uncounted",
    )
    world.settle()
    [finding] = findings(world.plan, (), NOON, NOON)
    assert (finding.subject, finding.health) == (f"{ENTRIES}:{PLANE}", "explained")


# Files that the ledger forgot: nothing deletes them, but a database may be restored, or cleaned by hand.


@pytest.mark.parametrize(("table", "partition", "what"), FILLED)
def test_plan__upload_deleted_from_ledger__changes_nothing(
    world: World, table: str, partition: str, what: str
) -> None:
    world.upload(what, says={"power": 2}, institution="hospital")
    world.settle()
    first = world.uploads[0], *(u for u in world.uploads if u.topic == "plane" and u.institution == "main")
    world.forget_upload(*first)
    assert world.judged() == {}
    world.forget_upload(*world.uploads)
    assert world.judged() == {}


def test_plan__factors_upload_deleted__its_factors_stay(world: World) -> None:
    world.forget_upload(*[u for u in world.uploads if u.kind == "factors"])
    world.upload("factors", says={"plane": 5})
    world.settle()
    assert world.contents[VALUES, "2025"] == {"plane": 5, "train": 1, "power": 1}
    assert world.judged() == {}


def test_plan__corrupt_without_upload__waits_for_one(world: World) -> None:
    world.forget_upload(*world.uploads)
    world.damage(ENTRIES, PLANE)
    verdict = world.verdict(ENTRIES, PLANE)
    assert (verdict.state, verdict.reason_code) == ("waiting", "no_files")
    assert world.due() == set()
    world.upload("plane", says="once more")
    world.settle()
    assert world.judged() == {}


def test_plan__uploads_not_indexed__imports_wait(world: World) -> None:
    def judged() -> tuple[str, str]:
        verdicts = plan(world.catalogue, replace(world.observed, not_indexed=3)).verdicts
        [verdict] = [v for v in verdicts if v.key == f"{ENTRIES}:{PLANE}"]
        return verdict.state, verdict.reason_code

    assert judged() == ("healthy", "")
    world.lose(ENTRIES, PLANE)
    assert judged() == ("waiting", "not_indexed")

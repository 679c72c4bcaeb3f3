"""Pipelines and locks: which work carries which pipeline, and what a locked year stops."""

from __future__ import annotations

import pytest

from domain.carbon.pipelines import locked_pipelines, unfinished_pipelines
from tests.unit.domain.carbon.world import ENTRIES, MASSES, MODULES, REPORT, TREE, VALUES, World

PLANE, TRAIN = "plane|2025", "train|2025"
TRAVEL = "travel|2025"


@pytest.fixture
def world() -> World:
    return World.reported(2024, 2025)


def due_for(world: World) -> dict[str, tuple[str, ...]]:
    return {v.key: v.pipelines for v in world.plan.due}


def test_plan__upload__carries_its_pipeline_to_the_report(world: World) -> None:
    chain = (world.upload("plane", says="corrected").pipeline_id,)
    for keys in ([f"{ENTRIES}:{PLANE}"], [f"{MASSES}:{PLANE}"], [f"{MODULES}:{TRAVEL}", f"{REPORT}:2025"]):
        assert due_for(world) == dict.fromkeys(keys, chain)
        assert unfinished_pipelines(world.plan) == {*chain}
        for verdict in world.plan.due:
            world.work(verdict)
    assert due_for(world) == {}
    assert unfinished_pipelines(world.plan) == frozenset()


def test_plan__factors_upload__carries_its_pipeline_to_changed_types(world: World) -> None:
    first = world.upload("factors", says={"plane": 2}).pipeline_id
    world.work(world.verdict(VALUES))
    second = world.upload("factors", says={"train": 2}).pipeline_id
    world.work(world.verdict(VALUES))
    assert due_for(world) == {f"{MASSES}:{PLANE}": (first,), f"{MASSES}:{TRAIN}": (second,)}
    world.work(world.verdict(MASSES, PLANE))
    world.work(world.verdict(MASSES, TRAIN))
    assert due_for(world) == dict.fromkeys([f"{MODULES}:{TRAVEL}", f"{REPORT}:2025"], (first, second))


def test_plan__several_uploads__share_work(world: World) -> None:
    chains = {
        world.upload("plane", says="a").pipeline_id,
        world.upload("plane", says="b", institution="hospital").pipeline_id,
    }
    assert set(world.verdict(ENTRIES, PLANE).pipelines) == chains


def test_plan__report_waits__names_its_pipelines(world: World) -> None:
    chain = world.upload("factors", says={"plane": 2, "train": 2}).pipeline_id
    world.work(world.verdict(VALUES))
    world.work(world.verdict(MASSES, PLANE))
    verdict = world.verdict(REPORT)
    assert (verdict.state, verdict.pipelines) == ("waiting", (chain,))


# Locks


@pytest.mark.parametrize("done", [0, 1, 2])
def test_plan__locked_mid_pipeline__continues_after_unlock(world: World, done: int) -> None:
    chain = world.upload("plane", says="corrected").pipeline_id
    for _ in range(done):
        for verdict in world.plan.due:
            world.work(verdict)
    due = world.due()
    world.locked[2025] = "published"
    assert {v.key for v in world.plan.verdicts if v.reason_code == "year_locked"} == due
    assert unfinished_pipelines(world.plan) == {chain}
    world.locked.clear()
    assert world.due() == due
    world.settle()
    assert world.contents[REPORT, "2025"]["plane"] == [["corrected"], 1]


@pytest.mark.parametrize(
    "hurt", [(VALUES, "2025"), (ENTRIES, PLANE), (TREE, "2025")], ids=lambda place: place[0]
)
@pytest.mark.parametrize("how", ["lose", "corrupt", "edit"])
def test_plan__input_corrupt__pipeline_is_unfinished(world: World, hurt: tuple[str, str], how: str) -> None:
    chain = world.upload("plane", says="corrected").pipeline_id
    world.work(world.verdict(ENTRIES, PLANE))
    getattr(world, how)(*hurt)
    assert chain in unfinished_pipelines(world.plan)
    world.settle()
    assert chain not in unfinished_pipelines(world.plan)


def test_plan__report_waits_for_another__pipeline_is_unfinished(world: World) -> None:
    chain = world.upload("plane", says="corrected").pipeline_id
    world.work(world.verdict(ENTRIES, PLANE))
    world.work(world.verdict(MASSES, PLANE))
    world.upload("train", says="corrected")
    assert world.verdict(REPORT).state == "waiting"
    assert chain in unfinished_pipelines(world.plan)
    assert locked_pipelines(world.plan) == {}


@pytest.mark.parametrize("done", [[], [ENTRIES], [ENTRIES, MASSES]], ids=len)
def test_plan__locked_year__pipeline_is_locked_with_its_year(world: World, done: list[str]) -> None:
    chain = world.upload("plane", says="corrected").pipeline_id
    for table in done:
        world.work(world.verdict(table, PLANE))
    world.locked[2025] = "published"
    assert locked_pipelines(world.plan) == {chain: {2025}}
    world.locked.clear()
    world.settle()
    assert locked_pipelines(world.plan) == {}


def test_plan__two_years_one_locked__continues_in_the_other(world: World) -> None:
    chain = world.upload("plane", 2024, 2025, says="corrected").pipeline_id
    world.locked[2025] = "published"
    assert locked_pipelines(world.plan) == {}
    world.settle()
    assert locked_pipelines(world.plan) == {chain: {2025}}

"""A report waits for what moves, and not for ever."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.carbon.patience import PATIENCE
from tests.unit.domain.carbon.world import ENTRIES, MASSES, REPORT, TYPES, VALUES, World

STEP = timedelta(seconds=15)


@pytest.fixture
def world() -> World:
    """Its report was made long ago."""
    world = World.reported()
    world.wait(days=90)
    return world


def edit_for(world: World, how_long: timedelta, *types: str) -> list[timedelta]:
    """Every half a minute somebody edits one of the types; a pass and its work take a quarter. When the
    report was summed, counted from the first edit."""
    began, sums, turn = world.now, [], 0
    while world.now - began < how_long:
        if turn % 2 == 0:
            world.upload(types[turn // 2 % len(types)], says=f"edit {turn}")
        for verdict in world.plan.due:
            world.work(verdict)
            if verdict.table == REPORT:
                sums.append(world.now - began)
        world.wait(seconds=STEP.total_seconds())
        turn += 1
    return sums


@pytest.mark.parametrize("types", [("plane",), ("plane", "train"), TYPES], ids=len)
def test_plan__continuous_edits__report_every_ten_minutes(world: World, types: tuple[str, ...]) -> None:
    hours = timedelta(hours=2)
    sums = edit_for(world, hours, *types)
    apart = [later - sooner for sooner, later in zip([timedelta(0), *sums], [*sums, hours], strict=True)]
    assert max(apart) <= PATIENCE + 4 * STEP
    assert min(apart[:-1]) >= PATIENCE
    assert world.settle() > 0
    assert world.report_state().current


def test_plan__report_waits_no_longer__names_the_old_types(world: World) -> None:
    edit_for(world, PATIENCE, "plane")
    world.upload("train", says="meanwhile")
    world.wait(minutes=1)
    found = world.verdict(REPORT)
    assert (found.state, found.reason_code) == ("stale", "inputs_changed")
    world.work(found)
    assert "train" in world.report_state().outdated
    assert world.report_state().notes[0].startswith("old in this report: ")


@pytest.mark.parametrize("how", ["lose", "corrupt"])
def test_plan__emissions_lost__report_waits_however_long(world: World, how: str) -> None:
    edit_for(world, PATIENCE, "plane")
    getattr(world, how)(MASSES, "train|2025")
    world.statuses[f"{MASSES}:train|2025"] = "running"
    world.wait(days=1)
    assert world.verdict(REPORT).state == "waiting"


def test_plan__report_summed__waits_ten_minutes_again(world: World) -> None:
    edit_for(world, PATIENCE + 4 * STEP, "plane")
    world.settle()
    world.wait(days=1)
    world.upload("plane", says="a day later")
    world.work(world.verdict(ENTRIES, "plane|2025"))
    world.work(world.verdict(MASSES, "plane|2025"))
    world.upload("factors", says={"train": 7})
    world.work(world.verdict(VALUES))
    assert world.verdict(REPORT).state == "waiting"
    world.wait(seconds=PATIENCE.total_seconds() - 1)
    assert world.verdict(REPORT).state == "waiting"
    world.wait(seconds=1)
    assert world.verdict(REPORT).due


def test_plan__report_waits_no_longer__keeps_its_fingerprint(world: World) -> None:
    """What failed so is not tried again because a minute passed."""
    edit_for(world, PATIENCE, "plane")
    world.upload("train", says="meanwhile")
    world.wait(minutes=1)
    before = world.verdict(REPORT)
    world.wait(minutes=5)
    assert world.verdict(REPORT) == before

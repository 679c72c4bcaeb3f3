"""Recalculation: exactly the types whose entries, factors or formula are not what they were."""

from __future__ import annotations

import pytest

from tests.unit.domain.carbon.world import ENTRIES, MASSES, REPORT, TYPES, VALUES, World, a_catalogue

PLANE = "plane|2025"


@pytest.fixture
def world() -> World:
    return World.reported(2024, 2025)


def import_upload(world: World, what: str, *years: int, **more: object) -> None:
    """An upload, and what takes it in; nothing that follows from it."""
    world.upload(what, *years, **more)
    for verdict in world.plan.due:
        world.work(verdict)


def recalculated(world: World) -> set[str]:
    return {v.partition for v in world.plan.due if v.table == MASSES}


def test_new_entries_recalculate_their_type_and_year(world: World) -> None:
    import_upload(world, "plane", says="corrected")
    assert world.due() == {f"{MASSES}:{PLANE}"}
    assert world.verdict(MASSES, PLANE).reason_code == "inputs_changed"


@pytest.mark.parametrize("changed", [("plane",), ("train", "power"), TYPES])
def test_new_factors_recalculate_exactly_the_types_they_belong_to(
    world: World, changed: tuple[str, ...]
) -> None:
    import_upload(world, "factors", says=dict.fromkeys(changed, 2))
    assert world.due() == {f"{MASSES}:{name}|2025" for name in changed}
    assert world.verdict(MASSES, f"{changed[0]}|2025").reason_code == "inputs_changed"


def test_a_type_without_factors_is_calculated_once_and_again_when_it_gets_some() -> None:
    world = World()
    world.upload("plane")
    world.settle()
    assert world.states[MASSES, PLANE].inputs["factors"] == "none"
    import_upload(world, "factors", says={"train": 1})
    assert recalculated(world) == set()
    import_upload(world, "factors", says={"plane": 1})
    assert recalculated(world) == {PLANE}


def test_plan__edited_formula_of_all_types__recalculates_all_and_imports_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("domain.carbon.plan.FORMULA", "SELECT another formula")
    assert {v.table for v in world.plan.due} == {MASSES}
    assert recalculated(world) == {f"{name}|{year}" for name in TYPES for year in (2024, 2025)}
    verdict = world.verdict(MASSES, PLANE)
    assert (verdict.state, verdict.reason_code) == ("stale", "rules_changed")


def test_factors_that_nobody_recorded_yet_are_not_used_so_that_their_chain_goes_on() -> None:
    world = World()
    world.upload("plane")
    world.work(world.verdict(ENTRIES, PLANE))
    one = world.upload("factors", says={"plane": 1})
    world.work(world.verdict(VALUES), dies=True)
    assert recalculated(world) == set()
    world.work(world.verdict(VALUES))
    assert one.pipeline_id in world.verdict(MASSES, PLANE).pipelines


def test_a_type_that_the_catalogue_lost_leaves_the_sums_and_is_left_alone(world: World) -> None:
    world.catalogue = a_catalogue(lost=frozenset({"train"}))
    world.settle()
    assert set(world.judged().values()) == {"waiting"}  # and told, see test_plan_intake
    assert not world.plan.due
    assert world.contents[REPORT, "2025"].keys() == {"plane", "power"}
    assert world.contents[MASSES, "train|2025"]

"""Recalculation: exactly the types whose entries, factors or formula are not what they were."""

from __future__ import annotations

import pytest

from tests.unit.carbon.world import ENTRIES, FACTS, MASSES, MODULES, PAST, REPORT, TYPES, World, a_catalogue

PLANE = "plane|2025"


@pytest.fixture
def world() -> World:
    return World.reported(2024, 2025)


def taken_in(world: World, what: str, *years: int, **more: object) -> None:
    """An upload, and what takes it in; nothing that follows from it."""
    world.upload(what, *years, **more)
    for verdict in world.plan.due:
        world.work(verdict)


def recalculated(world: World) -> set[str]:
    return {v.partition for v in world.plan.due if v.table == MASSES}


def test_new_entries_recalculate_their_type_and_year(world: World) -> None:
    taken_in(world, "plane", says="corrected")
    assert world.due() == {f"{MASSES}:{PLANE}"}
    assert world.verdict(MASSES, PLANE).why == "out of date: entries is not what it was made from"


@pytest.mark.parametrize("changed", [("plane",), ("train", "power"), TYPES])
def test_new_factors_recalculate_exactly_the_types_they_belong_to(
    world: World, changed: tuple[str, ...]
) -> None:
    taken_in(world, "factors", says=dict.fromkeys(changed, 2))
    assert world.due() == {f"{MASSES}:{name}|2025" for name in changed}
    assert world.verdict(MASSES, f"{changed[0]}|2025").reason_code == "inputs_changed"


def test_factors_of_several_years_recalculate_each(world: World) -> None:
    taken_in(world, "factors", 2024, 2025, says={"plane": 2})
    assert recalculated(world) == {"plane|2024", PLANE}


def test_factors_that_say_what_they_said_recalculate_nothing(world: World) -> None:
    taken_in(world, "factors", says=dict.fromkeys(TYPES, 1))
    assert world.judged() == {}


def test_entries_that_say_what_they_said_recalculate_nothing(world: World) -> None:
    taken_in(world, "plane", says="plane of 2025")
    assert world.judged() == {}


def test_a_type_without_factors_is_calculated_once_and_again_when_it_gets_some() -> None:
    world = World()
    world.upload("plane")
    world.settle()
    assert world.states[MASSES, PLANE].inputs["factors"] == "none"
    taken_in(world, "factors", says={"train": 1})
    assert recalculated(world) == set()
    taken_in(world, "factors", says={"plane": 1})
    assert recalculated(world) == {PLANE}


def test_factors_of_a_type_nobody_has_entries_of_recalculate_nothing(world: World) -> None:
    taken_in(world, "factors", 2031, says={"plane": 1})
    assert world.judged() == {}


def test_another_formula_recalculates_its_type_in_every_year(world: World) -> None:
    world.catalogue = a_catalogue(changed=frozenset({"train"}))
    world.work(world.verdict(ENTRIES, "train|2024"))
    world.work(world.verdict(ENTRIES, "train|2025"))
    assert world.due() == {f"{MASSES}:train|2024", f"{MASSES}:train|2025"}


def test_plan__edited_formula_of_all_types__recalculates_all_and_imports_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("domain.carbon.plan.FORMULA", "SELECT another formula")
    assert {v.table for v in world.plan.due} == {MASSES}
    assert recalculated(world) == {f"{name}|{year}" for name in TYPES for year in (2024, 2025)}


@pytest.mark.parametrize("hurt", ["lose", "damage", "edit"])
def test_they_wait_for_whole_entries(world: World, hurt: str) -> None:
    taken_in(world, "factors", says=dict.fromkeys(TYPES, 2))
    getattr(world, hurt)(ENTRIES, PLANE)
    assert recalculated(world) == {"train|2025", "power|2025"}
    world.work(world.verdict(ENTRIES, PLANE))
    assert recalculated(world) == {PLANE, "train|2025", "power|2025"}


@pytest.mark.parametrize("hurt", ["lose", "damage", "edit"])
def test_they_wait_for_whole_factors(world: World, hurt: str) -> None:
    taken_in(world, "plane", says="corrected")
    getattr(world, hurt)(FACTS)
    assert recalculated(world) == set()
    world.work(world.verdict(FACTS))
    assert recalculated(world) == {PLANE}


def test_factors_that_nobody_recorded_yet_are_not_used_so_that_their_chain_goes_on() -> None:
    world = World()
    world.upload("plane")
    world.work(world.verdict(ENTRIES, PLANE))
    one = world.upload("factors", says={"plane": 1})
    world.work(world.verdict(FACTS), dies=True)
    assert recalculated(world) == set()
    world.work(world.verdict(FACTS))
    assert one.pipeline_id in world.verdict(MASSES, PLANE).pipelines


def test_a_damaged_history_of_factors_holds_no_calculation_back(world: World) -> None:
    taken_in(world, "plane", says="corrected")
    world.damage(PAST)
    assert recalculated(world) == {PLANE}


@pytest.mark.parametrize(
    ("hurt", "reason"), [("lose", "missing"), ("damage", "damaged"), ("edit", "changed")]
)
def test_what_was_hurt_is_calculated_again(world: World, hurt: str, reason: str) -> None:
    before = world.contents[MASSES, PLANE]
    getattr(world, hurt)(MASSES, PLANE)
    assert world.due() == {f"{MASSES}:{PLANE}"}
    verdict = world.verdict(MASSES, PLANE)
    assert (verdict.reason_code, verdict.pipelines) == (reason, ())
    world.settle()
    assert world.judged() == {}
    assert world.contents[MASSES, PLANE] == before


def test_what_was_committed_and_not_recorded_is_calculated_again(world: World) -> None:
    taken_in(world, "plane", says="corrected")
    world.work(world.verdict(MASSES, PLANE), dies=True)
    assert world.verdict(MASSES, PLANE).reason_code == "changed"
    world.settle()
    assert world.judged() == {}


def test_entries_that_are_all_gone_on_purpose_cause_nothing_any_more(world: World) -> None:
    """Whoever edits may remove the last one; the partition is then ours, and empty."""
    inputs = world.states[ENTRIES, PLANE].inputs
    world.lose(ENTRIES, PLANE)
    world.record(ENTRIES, PLANE, inputs)
    assert world.due() == {f"{MASSES}:{PLANE}"}
    world.settle()
    assert world.contents[MASSES, PLANE] is None
    assert "plane" not in world.contents[REPORT, "2025"]
    assert world.contents[MODULES, "travel|2025"].keys() == {"train"}
    assert world.judged() == {}


def test_a_type_that_the_catalogue_lost_leaves_the_sums_and_is_left_alone(world: World) -> None:
    world.catalogue = a_catalogue(lost=frozenset({"train"}))
    world.settle()
    assert set(world.judged().values()) == {"waits"}  # and told, see test_plan_intake
    assert not world.plan.due
    assert world.contents[REPORT, "2025"].keys() == {"plane", "power"}
    assert world.contents[MASSES, "train|2025"]


def test_the_last_type_of_a_module_may_be_emptied(world: World) -> None:
    inputs = world.states[ENTRIES, "power|2025"].inputs
    world.lose(ENTRIES, "power|2025")
    world.record(ENTRIES, "power|2025", inputs)
    world.settle()
    assert world.contents[MODULES, "buildings|2025"] is None
    assert world.judged() == {}

"""Aggregation: once, when nothing of the year is about to change; and again when something did meanwhile."""

from __future__ import annotations

import pytest

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

PLANE, TRAIN = "plane|2025", "train|2025"
TRAVEL = "travel|2025"


@pytest.fixture
def world() -> World:
    return World.reported(2024, 2025)


@pytest.fixture
def halfway(world: World) -> World:
    """Two types were to be recalculated; one is, and the other's is due."""
    world.upload("factors", says={"plane": 2, "train": 2})
    world.work(world.verdict(VALUES))
    world.work(world.verdict(MASSES, PLANE))
    return world


def sums(world: World) -> dict[str, str]:
    """Of 2025 those that are not healthy."""
    return {key: state for key, state in world.judged().items() if "carbon_report" in key}


def test_a_recalculation_that_changed_nothing_sums_nothing(world: World) -> None:
    world.edit(MASSES, PLANE)
    world.work(world.verdict(MASSES, PLANE))
    assert world.judged() == {}


def test_other_scopes_make_all_sums_due(world: World) -> None:
    world.catalogue = a_catalogue(lost=frozenset({"train"}))
    assert world.due() == {
        f"{table}:{partition}{year}"
        for table, partition in ((MODULES, "travel|"), (MODULES, "buildings|"), (REPORT, ""))
        for year in (2024, 2025)
    }


def test_plan__calculation_due__report_waits(halfway: World) -> None:
    assert sums(halfway) == {f"{MODULES}:{TRAVEL}": "waiting", f"{REPORT}:2025": "waiting"}
    verdict = halfway.verdict(REPORT)
    assert verdict.reason_code == "inputs_changed"
    assert not verdict.due


@pytest.mark.parametrize("status", ["queued", "running"])
def test_plan__calculation_in_progress__report_waits(halfway: World, status: str) -> None:
    halfway.work(halfway.verdict(MASSES, TRAIN))
    halfway.statuses[f"{MASSES}:{TRAIN}"] = status
    assert set(sums(halfway).values()) == {"waiting"}


def test_plan__calculation_deferred__report_is_due(halfway: World) -> None:
    halfway.statuses[f"{MASSES}:{TRAIN}"] = "deferred"
    assert set(sums(halfway).values()) == {"due"}
    assert halfway.verdict(MASSES, TRAIN).due, "it is still wanted, and the report says that it is old"


@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_plan__calculation_refused_by_ledger__report_is_due(halfway: World, how: str) -> None:
    key = f"{MASSES}:{TRAIN}"
    halfway.refused.add(key)
    if how == "failed":  # of what was called off an observation says nothing
        halfway.statuses[key] = how
    assert set(sums(halfway).values()) == {"due"}


def test_plan__upload_waits__report_waits(world: World) -> None:
    world.edit(REPORT)
    for what in ("units", "factors", "plane"):
        waiting = World(**vars(world) | {"uploads": list(world.uploads), "says": dict(world.says)})
        waiting.upload(what, says={"power": 9})
        assert waiting.verdict(REPORT).state == "waiting"


@pytest.mark.parametrize("hurt", ["lose", "damage"])
def test_plan__emissions_lost__report_waits_even_if_deferred(world: World, hurt: str) -> None:
    """The report as it was says more than one without the type."""
    world.upload("train", says="corrected")
    world.work(world.verdict(ENTRIES, TRAIN))
    world.work(world.verdict(MASSES, TRAIN))
    getattr(world, hurt)(MASSES, PLANE)
    world.statuses[f"{MASSES}:{PLANE}"] = "deferred"
    assert sums(world) == {f"{MODULES}:{TRAVEL}": "waiting", f"{REPORT}:2025": "waiting"}
    world.settle()
    assert world.judged() == {}


def test_a_year_without_a_single_emission_has_no_report() -> None:
    world = World()
    world.upload("units")
    world.upload("factors", says=dict.fromkeys(TYPES, 1))
    world.settle()
    assert {v.table for v in world.plan.verdicts} == {TREE, VALUES}

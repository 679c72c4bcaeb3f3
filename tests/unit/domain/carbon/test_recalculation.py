"""What numbers wait for: types whose factors changed, and how far each module is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from domain.carbon.jobs import ALL_KINDS, KIND_OF
from domain.carbon.recalculation import ModuleState, StaleFactors, module_states, stale_factors
from domain.shared.work import Work, WorkRequest, split_key
from resources.ledger.transitions import first_generation
from tests.unit.domain.carbon.world import MASSES, NOON, VALUES, World

PLANE = f"{MASSES}:plane|2025"


@pytest.fixture
def world() -> World:
    return World.reported(2024, 2025)


def jobs(statuses: Mapping[str, str]) -> list[Work]:
    kinds = {kind.name: kind for kind in ALL_KINDS}
    found = []
    for number, (key, status) in enumerate(statuses.items(), 1):
        kind = kinds[KIND_OF[split_key(key)[0]]]
        row = first_generation(WorkRequest(kind.name, key, "f"), kind, NOON)
        found.append(replace(row, id=number, status=status))
    return found


def states(world: World, statuses: Mapping[str, str] | None = None) -> Sequence[ModuleState]:
    return module_states(world.catalogue, world.observed, world.plan, jobs(statuses or {}))


def travel(world: World, statuses: Mapping[str, str] | None = None) -> ModuleState:
    return next(s for s in states(world, statuses) if (s.year, s.module) == (2025, "travel"))


def stale(world: World, statuses: Mapping[str, str] | None = None) -> StaleFactors:
    return stale_factors(world.catalogue, world.observed, world.plan, jobs(statuses or {}))


def import_factors(world: World) -> None:
    world.upload("factors", says={"plane": 2, "train": 1, "power": 1})
    world.work(world.verdict(VALUES))


def test_stale_factors__nothing_changed__is_empty(world: World) -> None:
    assert stale(world) == StaleFactors([], [])


def test_stale_factors__factors_of_a_type_changed__names_it_with_its_job(world: World) -> None:
    import_factors(world)
    [part] = stale(world, {PLANE: "queued"}).types
    assert (part.year, part.module, part.data_entry_type) == (2025, "travel", "plane")
    assert (part.state, part.reason_code) == ("stale", "inputs_changed")
    assert (part.job_id, part.job_status) == (1, "queued")
    world.settle()
    assert stale(world) == StaleFactors([], [])


def test_stale_factors__locked_year__is_named_as_locked(world: World) -> None:
    import_factors(world)
    world.locked[2025] = "published"
    [part] = stale(world).types
    assert (part.state, part.reason_code) == ("waiting", "year_locked")


def test_stale_factors__entries_changed_only__is_empty(world: World) -> None:
    world.upload("plane", says="other rows")
    world.work(world.verdict("data_entries", "plane|2025"))
    assert stale(world).types == []


def test_stale_factors__upload_not_imported_yet__names_the_year(world: World) -> None:
    world.upload("factors", says={"plane": 2})
    found = stale(world, {f"{VALUES}:2025": "running"})
    [part] = found.years
    assert (part.year, part.data_entry_type, part.reason_code) == (2025, None, "uploaded")
    assert (part.job_status, found.types) == ("running", [])


def test_module_states__nothing_due__are_current_newest_year_first(world: World) -> None:
    assert [(s.year, s.module, s.status, len(s.parts)) for s in states(world)] == [
        (2025, "travel", "current", 0),
        (2025, "buildings", "current", 0),
        (2024, "travel", "current", 0),
        (2024, "buildings", "current", 0),
    ]
    assert all(s.calculated_at == NOON for s in states(world))


STATUSES = [
    ({}, "due"),
    ({PLANE: "queued"}, "recalculating"),
    ({PLANE: "running"}, "recalculating"),
    ({PLANE: "deferred"}, "waiting"),
    ({PLANE: "failed"}, "failed"),
    ({PLANE: "cancelled"}, "failed"),
    ({"asked_modules:travel|2025": "queued"}, "recalculating"),
]


@pytest.mark.parametrize(("statuses", "expected"), STATUSES)
def test_module_states__a_type_is_outdated__says_what_becomes_of_it(
    world: World, statuses: dict[str, str], expected: str
) -> None:
    import_factors(world)
    assert travel(world, statuses).status == expected
    assert PLANE in {f"{p.table}:{p.data_entry_type}|{p.year}" for p in travel(world, statuses).parts}
    assert [s.status for s in states(world, statuses) if s.module == "buildings"] == ["current"] * 2


def test_module_states__locked_year__is_locked(world: World) -> None:
    import_factors(world)
    world.locked[2025] = "published"
    assert travel(world).status == "locked"

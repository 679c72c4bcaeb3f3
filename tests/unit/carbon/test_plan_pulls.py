"""What the plan makes of what applications said: read what changed there, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.carbon.feeds import Heard, Pulled, unpulled
from domain.carbon.jobs import PULLED
from domain.carbon.plan import Verdict, plan
from tests.unit.carbon.world import ENTRIES, MASSES, REPORT, World

PLANE = Heard("manual", "main", "plane", 2025, "1")
READ = Pulled({"manual|main": "1"}, {})


@pytest.fixture
def world() -> World:
    return World.reported(2025)


def verdicts(world: World, *heard: Heard, pulled: Pulled | None = None, feeds: str = "") -> list[Verdict]:
    seen = replace(world.observed, heard=heard, pulled={"plane|2025": pulled} if pulled else {}, feeds=feeds)
    return [v for v in plan(world.catalogue, seen).verdicts if v.table == PULLED]


def test_what_was_never_read_is_due_and_says_where_it_is(world: World) -> None:
    [verdict] = verdicts(world, PLANE)
    assert (verdict.state, verdict.reason_code, verdict.kind) == ("due", "feed_changed", "carbon.api_ingest")
    assert verdict.why == "not read since it changed: manual|main"


def test_what_was_read_is_healthy_until_its_version_is_another(world: World) -> None:
    [verdict] = verdicts(world, PLANE, pulled=READ)
    assert verdict.state == "healthy"
    [verdict] = verdicts(world, replace(PLANE, version="2"), pulled=READ)
    assert verdict.due


def test_a_partition_is_one_piece_of_work_whatever_its_places(world: World) -> None:
    other = replace(PLANE, institution="other")
    [verdict] = verdicts(world, other, PLANE, pulled=READ)
    assert verdict.due
    assert verdict.why.endswith(": manual|other")


def test_every_new_version_is_another_wish(world: World) -> None:
    requests = {verdicts(world, replace(PLANE, version=v))[0].fingerprint for v in ("1", "2", "3")}
    assert len(requests) == 3
    assert verdicts(world, PLANE)[0].fingerprint in requests


def test_another_address_or_token_is_another_wish(world: World) -> None:
    """A refusal that was about them does not forbid what is wanted now."""
    assert (
        verdicts(world, PLANE, feeds="a")[0].fingerprint != verdicts(world, PLANE, feeds="b")[0].fingerprint
    )


def test_what_was_refused_under_other_units_is_read_again(world: World) -> None:
    units = str(world.observed.state("units", "2025").version)
    refused = {"entries": 1, "of": 2, "first": [], "units": units}
    assert (
        verdicts(world, PLANE, pulled=replace(READ, refused={"manual|main": refused}))[0].state == "healthy"
    )
    refused |= {"units": "those of yesterday"}
    assert verdicts(world, PLANE, pulled=replace(READ, refused={"manual|main": refused}))[0].due


def test_a_locked_year_is_not_read(world: World) -> None:
    world.locked[2025] = "published"
    [verdict] = verdicts(world, PLANE)
    assert verdict.state == "locked"


def test_a_type_nobody_counts_is_told_and_is_no_work(world: World) -> None:
    [verdict] = verdicts(world, replace(PLANE, data_entry_type="zeppelin"))
    assert (verdict.state, verdict.reason_code) == ("waits", "unknown_type")


def test_a_report_waits_for_what_is_about_to_be_read(world: World) -> None:
    world.upload("train", says="corrected")
    for table in (ENTRIES, MASSES):
        world.work(world.verdict(table, "train|2025"))
    report = f"{REPORT}:2025"

    def state(**more: object) -> str:
        seen = replace(world.observed, **more)  # type: ignore[arg-type]
        return {v.key: v.state for v in plan(world.catalogue, seen).verdicts}[report]

    assert state() == "due"
    assert state(heard=[PLANE]) == "waits"
    assert state(heard=[PLANE], work={f"{PULLED}:plane|2025": "running"}) == "waits"
    assert state(heard=[PLANE], work={f"{PULLED}:plane|2025": "deferred"}) == "due", "it holds nothing back"


def test_unread_places_come_in_one_order() -> None:
    places = [replace(PLANE, institution=name) for name in ("c", "a", "b")]
    assert [one.institution for one in unpulled(places, READ, "")] == ["a", "b", "c"]

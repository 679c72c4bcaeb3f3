"""The plan of feeds: what changed in an application is read, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.carbon.feeds import FEED_TABLES, FeedChange, FeedRead, changes_to_read
from domain.carbon.jobs import FEED_ENTRIES
from domain.carbon.plan import plan
from domain.shared.verdict import Verdict
from tests.unit.domain.carbon.world import ENTRIES, MASSES, REPORT, World

PLANE = FeedChange("manual", "main", "plane", 2025, "1")
READ = FeedRead({"manual|main": "1"}, {})


@pytest.fixture
def world() -> World:
    return World.reported(2025)


def verdicts(
    world: World, *changes: FeedChange, read: FeedRead | None = None, feeds: str = ""
) -> list[Verdict]:
    reads = {PLANE.key: read} if read else {}
    seen = replace(world.observed, feed_changes=changes, feed_reads=reads, feeds=feeds)
    return [v for v in plan(world.catalogue, seen).verdicts if v.table == FEED_ENTRIES]


def test_plan__change_never_read__is_due(world: World) -> None:
    [verdict] = verdicts(world, PLANE)
    assert (verdict.state, verdict.reason_code) == ("stale", "feed_changed")
    assert verdict.request is not None
    assert verdict.request.kind == "carbon.api_ingest"


def test_plan__change_read__is_healthy_until_version_differs(world: World) -> None:
    [verdict] = verdicts(world, PLANE, read=READ)
    assert verdict.state == "healthy"
    [verdict] = verdicts(world, replace(PLANE, version="2"), read=READ)
    assert verdict.due


def test_plan__two_scopes_of_a_partition__one_work_item(world: World) -> None:
    other = replace(PLANE, institution="other")
    [verdict] = verdicts(world, other, PLANE, read=READ)
    assert verdict.due
    assert verdict.reason.endswith(": manual|other")


def test_plan__new_version__another_fingerprint(world: World) -> None:
    requests = {verdicts(world, replace(PLANE, version=v))[0].fingerprint for v in ("1", "2", "3")}
    assert len(requests) == 3
    assert verdicts(world, PLANE)[0].fingerprint in requests


def test_plan__another_address_or_token__another_fingerprint(world: World) -> None:
    """A failure under the old address does not forbid the new work."""
    assert (
        verdicts(world, PLANE, feeds="a")[0].fingerprint != verdicts(world, PLANE, feeds="b")[0].fingerprint
    )


def test_plan__entries_refused_under_other_units__is_due(world: World) -> None:
    units = str(world.observed.state("units", "2025").version)
    refused = {"entries": 1, "of": 2, "first": [], "units": units}
    assert verdicts(world, PLANE, read=replace(READ, refused={"manual|main": refused}))[0].state == "healthy"
    refused |= {"units": "those of yesterday"}
    assert verdicts(world, PLANE, read=replace(READ, refused={"manual|main": refused}))[0].due


def test_plan__locked_year__is_not_read(world: World) -> None:
    world.locked[2025] = "published"
    [verdict] = verdicts(world, PLANE)
    assert (verdict.state, verdict.reason_code) == ("waiting", "year_locked")


def test_plan__unknown_type__waits(world: World) -> None:
    [verdict] = verdicts(world, replace(PLANE, data_entry_type="zeppelin"))
    assert (verdict.state, verdict.reason_code) == ("waiting", "unknown_type")


def test_plan__unavailable_change__report_waits(world: World) -> None:
    world.upload("train", says="corrected")
    for table in (ENTRIES, MASSES):
        world.work(world.verdict(table, "train|2025"))
    report = f"{REPORT}:2025"

    def state(**more: object) -> str:
        seen = replace(world.observed, **more)  # type: ignore[arg-type]
        return {v.key: v.state for v in plan(world.catalogue, seen).verdicts}[report]

    assert state() == "stale"
    assert state(feed_changes=[PLANE]) == "waiting"
    assert state(feed_changes=[PLANE], work={f"{FEED_ENTRIES}:plane|2025": "running"}) == "waiting"
    assert state(feed_changes=[PLANE], work={f"{FEED_ENTRIES}:plane|2025": "deferred"}) == "stale", (
        "it holds nothing back"
    )


def test_changes_to_read__several_scopes__sorted() -> None:
    places = [replace(PLANE, institution=name) for name in ("c", "a", "b")]
    assert [one.institution for one in changes_to_read(places, READ, "")] == ["a", "b", "c"]


UNITS_2025 = FeedChange("api", "main", "", 2025, "1", "units")
PLANE_FACTORS = replace(PLANE, kind="factors")


def feed_verdicts(world: World, *changes: FeedChange, **more: object) -> dict[str, Verdict]:
    seen = replace(world.observed, feed_changes=changes, **more)  # type: ignore[arg-type]
    return {v.key: v for v in plan(world.catalogue, seen).verdicts if v.table in FEED_TABLES.values()}


def test_plan__units_factors_and_entries__are_work_of_their_kinds(world: World) -> None:
    found = feed_verdicts(world, PLANE, PLANE_FACTORS, UNITS_2025)
    assert {key: v.request.kind for key, v in found.items() if v.request} == {
        "pulled_units:2025": "carbon.unit_sync",
        "pulled_factors:plane|2025": "carbon.factor_ingest",
        "pulled_entries:plane|2025": "carbon.api_ingest",
    }
    assert list(found) == [UNITS_2025.key, PLANE_FACTORS.key, PLANE.key], "entries are checked against units"


def test_plan__factors_read__entries_of_the_same_scope_are_still_due(world: World) -> None:
    found = feed_verdicts(world, PLANE, PLANE_FACTORS, feed_reads={PLANE_FACTORS.key: READ})
    assert {key: v.due for key, v in found.items()} == {PLANE_FACTORS.key: False, PLANE.key: True}


def test_plan__factors_of_an_unknown_type__wait(world: World) -> None:
    [verdict] = feed_verdicts(world, replace(PLANE_FACTORS, data_entry_type="zeppelin")).values()
    assert (verdict.state, verdict.reason_code) == ("waiting", "unknown_type")


def test_plan__units_changed_in_a_locked_year__are_not_read(world: World) -> None:
    world.locked[2025] = "published"
    [verdict] = feed_verdicts(world, UNITS_2025).values()
    assert (verdict.state, verdict.reason_code) == ("waiting", "year_locked")


def test_plan__units_changed__report_waits_for_them(world: World) -> None:
    world.upload("train", says="corrected")
    for table in (ENTRIES, MASSES):
        world.work(world.verdict(table, "train|2025"))
    seen = replace(world.observed, feed_changes=[UNITS_2025])
    verdicts = {v.key: v.state for v in plan(world.catalogue, seen).verdicts}
    assert verdicts[f"{REPORT}:2025"] == "waiting"

"""The state of a report: never "up to date" while anything of the year is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from domain.carbon.feeds import FeedChange, FeedRead
from domain.carbon.jobs import FEED_ENTRIES
from domain.carbon.plan import plan
from domain.carbon.report_state import ReportState, report_state
from tests.unit.domain.carbon.world import (
    ENTRIES,
    MASSES,
    MODULES,
    NOON,
    PAST,
    REPORT,
    TREE,
    UNAVAILABLE,
    VALUES,
    World,
)

PARTITIONS = [
    (TREE, "2025"),
    (VALUES, "2025"),
    (PAST, "2025"),
    (ENTRIES, "plane|2025"),
    (MASSES, "plane|2025"),
    (MODULES, "travel|2025"),
    (REPORT, "2025"),
]


@pytest.fixture
def world() -> World:
    return World.reported()


def work_off(world: World, *tables: str) -> None:
    for table in tables:
        for verdict in [v for v in world.plan.due if v.table == table]:
            world.work(verdict)


def test_report_state__of_a_complete_report__is_up_to_date(world: World) -> None:
    assert world.report_state() == ReportState(2025)
    assert (world.report_state().headline, world.report_state().notes) == ("Up to date", ())


@pytest.mark.parametrize("done", [(), (ENTRIES,), (ENTRIES, MASSES)], ids=["file", "entries", "emissions"])
@pytest.mark.parametrize("locked", [False, True])
def test_type__is_outdated_from_its_upload_until_the_report_is_summed(
    world: World, done: tuple[str, ...], locked: bool
) -> None:
    world.upload("plane", says="more")
    work_off(world, *done)
    if locked:
        world.locked[2025] = "published"
    found = world.report_state()
    assert (set(found.outdated), found.headline) == ({"plane"}, "1 type not up to date")
    assert found.notes[0] == "old in this report: plane"
    assert ("2025 is locked: published" in found.notes) == locked
    world.locked.clear()
    world.settle()
    assert world.report_state().headline == "Up to date"


def test_upload__to_an_unavailable_partition__waits_with_its_pipeline(world: World) -> None:
    world.withhold(ENTRIES, "plane|2025")
    one = world.upload("plane", says="more")
    assert world.verdict(ENTRIES, "plane|2025").pipelines == (one.pipeline_id,)
    assert world.due() == set()
    world.upload("train", says="more")
    world.settle()
    assert "more" in str(world.contents[ENTRIES, "train|2025"]), "others go on"
    world.give_back(ENTRIES, "plane|2025")
    world.settle()
    assert world.report_state().current


@pytest.mark.parametrize("table", [MASSES, TREE])
def test_report__of_an_unavailable_input__waits_and_names_it(world: World, table: str) -> None:
    world.withhold(table, "plane|2025" if table == MASSES else "2025")
    verdict = world.verdict(REPORT)
    assert (verdict.state, verdict.reason_code) == ("waiting", "input_missing")
    assert verdict.reason.endswith(UNAVAILABLE.unavailable)


def test_waiting_factors__outdate_no_type_by_name(world: World) -> None:
    world.upload("factors", says={"plane": 2, "train": 3})
    found = world.report_state()
    assert (found.outdated, found.headline) == ({}, "Not up to date")
    assert found.notes == (
        "factors 2025 is not up to date: uploads not imported yet: 1",
        *found.notes[1:],
    )
    work_off(world, VALUES)
    assert set(world.report_state().outdated) == {"plane", "train"}
    assert world.report_state().headline == "2 types not up to date"


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("how", ["lose", "corrupt", "edit", "withhold"])
@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda partition: partition[0])
def test_partition_differs_or_is_unavailable__is_an_issue_in_a_locked_year_too(
    world: World, partition: tuple[str, str], how: str, locked: bool
) -> None:
    getattr(world, how)(*partition)
    if locked:
        world.locked[2025] = "published"
    name = VALUES if partition[0] == PAST else partition[0]  # they are written together
    found = world.report_state()
    assert not found.current
    assert any(note.startswith(f"{name} {partition[1]} is not up to date: ") for note in found.notes)
    assert bool(found.altered) == (partition[0] == REPORT and how != "withhold")
    if how == "withhold":
        assert world.verdict(name, partition[1]).state == "unavailable"
        assert world.due() == set()
        world.give_back(*partition)
        assert world.report_state().current


def test_report__that_was_altered__is_not_what_was_calculated(world: World) -> None:
    world.locked[2025] = "published"
    world.edit(REPORT, words="ten times as much")
    found = world.report_state()
    assert found.headline == "Not what was calculated"
    assert found.notes[0].startswith("these numbers are not what was calculated: its content (")


def test_report__between_its_commit_and_its_record__is_not_altered(world: World) -> None:
    world.upload("plane", says="more")
    work_off(world, ENTRIES, MASSES)
    world.work(world.verdict(REPORT), dies=True)
    world.statuses[f"{REPORT}:2025"] = "running"
    assert not world.report_state().altered
    assert "carbon_reports 2025 is not up to date: it is being made now" in world.report_state().notes
    world.statuses.clear()
    assert world.report_state().altered


def test_report__that_never_was__is_not_altered() -> None:
    assert World().report_state() == ReportState(2025)
    world = World()
    world.upload("plane", says="first")
    world.work(world.verdict(ENTRIES, "plane|2025"))
    assert not world.report_state().altered
    assert set(world.report_state().outdated) == {"plane"}


@pytest.mark.parametrize("what", ["units", "factors", "plane"])
def test_left_out_rows__are_noted_until_a_complete_file_is_in(world: World, what: str) -> None:
    says = {"plane": 2} if what == "factors" else "others"
    number = world.upload(what, says=says, left_out=3).id
    assert world.report_state().left_out == ()  # not in the report yet, which is an issue
    world.settle()
    found = world.report_state()
    assert found.notes == (f"{what}: 3 of 10 rows of {what}-{number}.csv were left out",)
    assert (found.headline, found.current) == ("Made without what was left out", True)
    world.locked[2025] = "published"
    assert found.notes[0] in world.report_state().notes
    world.locked.clear()
    world.upload(what, says={"plane": 3} if what == "factors" else "all")
    world.settle()
    assert world.report_state() == ReportState(2025)


def test_left_out_rows__of_one_institution__stay_noted_after_anothers_complete_file(world: World) -> None:
    world.upload("plane", says="some", left_out=1)
    world.upload("plane", says="all", institution="other")
    world.settle()
    assert [one.of for one in world.report_state().left_out] == ["plane"]


def test_refused_feed_entries__are_noted_once(world: World) -> None:
    refused = {"manual|main": {"entries": 2, "of": 3, "first": [], "units": "1"}}
    world.feed_reads = {f"{FEED_ENTRIES}:{p}": FeedRead({}, refused) for p in ("plane|2025", "train|2024")}
    world.upload("plane", says="edited", source="manual", left_out=2)
    world.settle()
    assert world.report_state().notes == ("plane: 2 of 3 entries of manual|main are refused",)


@pytest.mark.parametrize(
    ("since", "said"),
    [(NOON, "manual has not answered since 2026-11-18 12:00 UTC"), (None, "manual has never answered")],
)
def test_feed__that_does_not_answer__is_noted(world: World, since: datetime | None, said: str) -> None:
    world.silent["manual"] = since
    found = world.report_state()
    assert found.notes == (f"{said}: what changed there is not known",)
    assert found.headline == "Up to date as far as is known"
    world.silent.clear()
    assert world.report_state() == ReportState(2025)


def test_report_state__of_one_year__ignores_other_years() -> None:
    world = World.reported(2024, 2025)
    world.upload("plane", 2024, says="more")
    world.locked[2024] = "published"
    assert world.report_state(2025) == ReportState(2025)
    assert not world.report_state(2024).current


def test_unknown_type__is_an_issue_of_no_type(world: World) -> None:
    seen = replace(world.observed, feed_changes=[FeedChange("app", "main", "teleport", 2025, "1")])
    found = report_state(world.catalogue, seen, plan(world.catalogue, seen).verdicts, 2025)
    assert (found.outdated, found.headline) == ({}, "Not up to date")
    assert [issue.subject for issue in found.other_issues] == ["pulled_entries teleport|2025"]

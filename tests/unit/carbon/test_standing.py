"""What a reader of a report is told: never "up to date" while anything of the year is not."""

from __future__ import annotations

from datetime import datetime

import pytest

from domain.carbon.feeds import FeedRead
from domain.carbon.standing import Standing
from tests.unit.carbon.world import (
    ENTRIES,
    FACTS,
    MASSES,
    MODULES,
    NOON,
    PAST,
    REPORT,
    TREE,
    UNREAD,
    World,
)

PLACES = [
    (TREE, "2025"),
    (FACTS, "2025"),
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


def test_of_a_report_that_has_all_in_it_there_is_nothing_to_be_told(world: World) -> None:
    assert world.standing() == Standing(2025)
    assert (world.standing().headline, world.standing().notes) == ("Up to date", ())


@pytest.mark.parametrize("done", [(), (ENTRIES,), (ENTRIES, MASSES)], ids=["file", "entries", "emissions"])
@pytest.mark.parametrize("locked", [False, True])
def test_a_type_is_old_from_its_upload_until_the_report_is_summed(
    world: World, done: tuple[str, ...], locked: bool
) -> None:
    world.upload("plane", says="more")
    work_off(world, *done)
    if locked:
        world.locked[2025] = "published"
    found = world.standing()
    assert (set(found.old), found.headline) == ({"plane"}, "1 type not up to date")
    assert found.notes[0] == "old in this report: plane"
    assert ("2025 is locked: published" in found.notes) == locked
    world.locked.clear()
    world.settle()
    assert world.standing().headline == "Up to date"


@pytest.mark.parametrize(("table", "partition"), PLACES)
@pytest.mark.parametrize("locked", [False, True])
def test_what_cannot_be_read_is_never_up_to_date_nor_recalculated_from(
    world: World, table: str, partition: str, locked: bool
) -> None:
    if locked:
        world.locked[2025] = "published"
    world.withhold(table, partition)
    shown = FACTS if table == PAST else table  # they are filled together, and told as one
    verdict = world.verdict(shown, partition)
    assert (verdict.state, verdict.reason_code) == ("waits", "lake_unreadable")
    assert UNREAD.unavailable in verdict.why
    assert world.due() == set()
    found = world.standing()
    assert not found.current
    assert not found.altered, "what cannot be read is not altered for that"
    assert any(UNREAD.unavailable in note for note in found.notes)
    world.give_back(table, partition)
    assert world.standing().current


def test_more_of_a_partition_that_cannot_be_read_waits_with_its_chain(world: World) -> None:
    world.withhold(ENTRIES, "plane|2025")
    one = world.upload("plane", says="more")
    assert world.verdict(ENTRIES, "plane|2025").pipelines == (one.pipeline_id,)
    assert world.due() == set()
    world.upload("train", says="more")
    world.settle()
    assert "more" in str(world.contents[ENTRIES, "train|2025"]), "others go on"
    world.give_back(ENTRIES, "plane|2025")
    world.settle()
    assert world.standing().current


@pytest.mark.parametrize("table", [MASSES, TREE])
def test_a_report_waits_for_what_cannot_be_read_and_names_it(world: World, table: str) -> None:
    world.withhold(table, "plane|2025" if table == MASSES else "2025")
    verdict = world.verdict(REPORT)
    assert (verdict.state, verdict.reason_code) == ("waits", "input_missing")
    assert verdict.why.endswith(UNREAD.unavailable)


def test_factors_that_wait_make_nobody_knows_which_types_old(world: World) -> None:
    world.upload("factors", says={"plane": 2, "train": 3})
    found = world.standing()
    assert (found.old, found.headline) == ({}, "Not up to date")
    assert found.notes == (
        "factors 2025 is not up to date: 1 uploaded files wait to be taken in",
        *found.notes[1:],
    )
    work_off(world, FACTS)
    assert set(world.standing().old) == {"plane", "train"}
    assert world.standing().headline == "2 types not up to date"


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("how", ["lose", "damage", "edit"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[0])
def test_whatever_is_hurt_is_told_in_a_locked_year_too(
    world: World, place: tuple[str, str], how: str, locked: bool
) -> None:
    getattr(world, how)(*place)
    if locked:
        world.locked[2025] = "published"
    found = world.standing()
    assert not found.current
    assert found.headline != "Up to date"
    name = FACTS if place[0] == PAST else place[0]
    assert any(note.startswith(f"{name} {place[1]} is not up to date: ") for note in found.notes)
    assert bool(found.altered) == (place[0] == REPORT)


def test_a_published_report_that_somebody_changed_is_not_what_was_calculated(world: World) -> None:
    world.locked[2025] = "published"
    world.edit(REPORT, words="ten times as much")
    found = world.standing()
    assert found.headline == "Not what was calculated"
    assert found.notes[0].startswith(
        "these numbers are not what was calculated: content is not what was calculated"
    )


def test_between_its_commit_and_its_record_a_report_is_no_strangers_work(world: World) -> None:
    world.upload("plane", says="more")
    work_off(world, ENTRIES, MASSES)
    world.work(world.verdict(REPORT), dies=True)
    world.statuses[f"{REPORT}:2025"] = "running"
    assert not world.standing().altered
    assert "carbon_reports 2025 is not up to date: it is being made now" in world.standing().notes
    world.statuses.clear()
    assert world.standing().altered


def test_a_report_that_never_was_is_not_altered() -> None:
    assert World().standing() == Standing(2025)
    world = World()
    world.upload("plane", says="first")
    world.work(world.verdict(ENTRIES, "plane|2025"))
    assert not world.standing().altered
    assert set(world.standing().old) == {"plane"}


@pytest.mark.parametrize("what", ["units", "factors", "plane"])
def test_rows_that_were_left_out_are_told_until_a_file_without_gaps_has_come(world: World, what: str) -> None:
    says = {"plane": 2} if what == "factors" else "others"
    number = world.upload(what, says=says, left_out=3).id
    assert world.standing().left_out == ()  # it is not in the report yet, and that is told
    world.settle()
    found = world.standing()
    assert found.notes == (f"{what}: 3 of 10 rows of {what}-{number}.csv were left out",)
    assert (found.headline, found.current) == ("Made without what was left out", True)
    world.locked[2025] = "published"
    assert found.notes[0] in world.standing().notes
    world.locked.clear()
    world.upload(what, says={"plane": 3} if what == "factors" else "all")
    world.settle()
    assert world.standing() == Standing(2025)


def test_what_one_institution_left_out_stays_told_when_another_brings_a_whole_file(world: World) -> None:
    world.upload("plane", says="some", left_out=1)
    world.upload("plane", says="all", institution="other")
    world.settle()
    assert [one.of for one in world.standing().left_out] == ["plane"]


def test_entries_that_an_application_has_wrong_are_told_once(world: World) -> None:
    refused = {"manual|main": {"entries": 2, "of": 3, "first": [], "units": "1"}}
    world.feed_reads = {"plane|2025": FeedRead({}, refused), "train|2024": FeedRead({}, refused)}
    world.upload("plane", says="edited", source="manual", left_out=2)
    world.settle()
    assert world.standing().notes == ("plane: 2 of 3 entries of manual|main are refused",)


@pytest.mark.parametrize(
    ("since", "told"),
    [(NOON, "manual has not answered since 2026-11-18 12:00 UTC"), (None, "manual has never answered")],
)
def test_an_application_that_does_not_answer_is_told(world: World, since: datetime | None, told: str) -> None:
    world.silent["manual"] = since
    found = world.standing()
    assert found.notes == (f"{told}: what changed there is not known",)
    assert found.headline == "Up to date as far as is known"
    world.silent.clear()
    assert world.standing() == Standing(2025)


def test_another_year_is_another_matter() -> None:
    world = World.reported(2024, 2025)
    world.upload("plane", 2024, says="more")
    world.locked[2024] = "published"
    assert world.standing(2025) == Standing(2025)
    assert not world.standing(2024).current


def test_what_the_catalogue_has_no_type_for_is_told_and_is_no_old_type(world: World) -> None:
    from dataclasses import replace

    from domain.carbon.feeds import FeedChange
    from domain.carbon.plan import plan
    from domain.carbon.standing import standing

    seen = replace(world.observed, feed_changes=[FeedChange("app", "main", "teleport", 2025, "1")])
    found = standing(world.catalogue, seen, plan(world.catalogue, seen).verdicts, 2025)
    assert (found.old, found.headline) == ({}, "Not up to date")
    assert [line.subject for line in found.others] == ["pulled_entries teleport|2025"]

"""Runs of the references in Dagster: what starts them, how many there are, what they leave behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.policies.tags import REASON
from domain.references.jobs import HANDOFF, INGEST
from orchestration.instance import open_instance
from resources.database.migrate import take_branch_away
from services.references import handoff, ingest
from services.references.findings import find_problems
from tests.integration.services.references.conftest import NOW
from tests.integration.services.references.references_app import ReferencesApp, of
from tests.integration.services.references.shelf import numbered


def runs(app: ReferencesApp) -> list[dg.DagsterRun]:
    with open_instance(app.settings) as instance:
        return list(reversed(instance.get_runs()))


def shown(event: dg.EventLogEntry) -> dict[str, Any]:
    found = event.asset_materialization
    assert found
    return {name: value.value for name, value in found.metadata.items()}


def by_partition(events: list[dg.EventLogEntry]) -> dict[str | None, dict[str, Any]]:
    found: dict[str | None, dict[str, Any]] = {}
    for event in events:
        assert event.asset_materialization
        assert event.asset_materialization.partition not in found, "two events of one source"
        found[event.asset_materialization.partition] = shown(event)
    return found


def test_heal__two_sources__ends_in_documents(app: ReferencesApp):
    east, west = numbered(range(3)), numbered(range(2), "<p>west</p>")
    app.shelves["east"].holds(east)
    app.shelves["west"].holds(west)
    app.heal()
    assert app.texts() == of("east", east) | {"west:r0": "west\n0", "west:r1": "west\n1"}
    assert app.references().keys() == app.texts().keys()
    assert app.starts() == ()
    assert find_problems(app.service) == []


def test_heal__new_home__shows_one_event_for_each_source_with_its_reason(app: ReferencesApp):
    app.shelves["east"].holds(numbered(range(3)))
    app.shelves["west"].holds(numbered(range(5)))
    app.heal()
    scraped = by_partition(app.events("references"))
    assert {name: (one["reason"], one["stored"]) for name, one in scraped.items()} == {
        "east": ("gap", 3),
        "west": ("gap", 5),
    }
    assert all(one["without_handoff"] == 0 and "svg" in one["references_per_day"] for one in scraped.values())
    made = by_partition(app.events("documents"))
    assert {name: (one["reason"], one["documents_made"]) for name, one in made.items()} == {
        "east": ("ingestion job queued", 3),
        "west": ("ingestion job queued", 5),
    }
    assert made["east"]["dagster/partition_row_count"] == 3
    assert "data:image/svg" in made["west"]["documents_per_day"]


def test_heal__checks__say_that_nothing_was_lost(app: ReferencesApp):
    app.shelves["east"].holds(numbered(range(3)))
    app.heal()
    with open_instance(app.settings) as instance:
        for table, name in (("references", "handed_off"), ("documents", "ingested")):
            key = dg.AssetCheckKey(dg.AssetKey(["refs", table]), name)
            record = instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key]
            event = record.event.dagster_event if record.event else None
            assert event
            assert event.asset_check_evaluation_data.passed


def test_heal__many_batches__takes_a_handful_of_runs(app: ReferencesApp, monkeypatch: pytest.MonkeyPatch):
    """Of 300 hand-offs and 300 jobs in batches of 20: two scrapes, and one run for each pulled kind."""
    for module in (handoff, ingest):
        monkeypatch.setattr(module, "BATCH", 20)
    app.shelves["east"].holds(numbered(range(200)))
    app.shelves["west"].holds(numbered(range(100)))
    app.heal()
    assert len(app.texts()) == 300
    assert [min(run.asset_selection or ()).path[-1] for run in runs(app)] == [
        "references",
        "references",
        "documents",
    ]


def test_pass__pulled_work_is_due__starts_one_run_for_each_kind(app: ReferencesApp):
    app.shelves["east"].holds(numbered(range(3)))
    app.shelves["west"].holds(numbered(range(2)))
    for source in app.sources:
        app.sync(source)
    [start] = app.starts()
    assert (start.pulls, start.tables, start.partitions) == (INGEST, ("documents",), ("east", "west"))
    assert start.reason == "5 due"


def test_pass__crash_before_the_handoffs__makes_and_drains_them(app: ReferencesApp):
    app.shelves["east"].holds(numbered(range(3)))
    app.store_without_handoffs("east")
    assert [start.pulls for start in app.starts() if start.pulls] == [HANDOFF]
    app.heal()
    assert len(app.texts()) == 3
    [event] = app.events("handoffs")
    assert (shown(event)["handed_over"], shown(event)["ingestion_job_queued"]) == (3, 3)
    assert shown(event)["reason"] == "some may be missing"


def test_materialize__references_of_a_source__scrapes_it_alone(app: ReferencesApp):
    app.shelves["east"].holds(numbered(range(3)))
    app.shelves["west"].holds(numbered(range(2)))
    assert app.run("references", "west").success
    assert app.references().keys() == {"west:r0", "west:r1"}
    [run] = runs(app)
    assert run.tags[REASON] == "requested by a person"


def test_materialize__documents_of_a_source__ingests_what_is_due_of_it_alone(app: ReferencesApp):
    for source in app.sources:
        app.shelves[source].holds(numbered(range(2)))
        app.sync(source)
    assert app.run("documents", "east").success
    assert app.texts().keys() == {"east:r0", "east:r1"}
    assert app.jobs()["west:r0"].status == "queued"


def test_materialize__source_is_down__fails_and_is_tried_again(app: ReferencesApp):
    app.shelves["east"].holds({}, fault="down")
    ended = app.run("references", "east")
    assert not ended.success
    assert "does not answer" in ended.errors[0]
    [scrape] = app.service.ledger.find("references.scrape")
    assert (scrape.status, scrape.reason_code) == ("deferred", "scrape_down")


def test_pass__source_is_due_again__scrapes_it_for_nothing(app: ReferencesApp):
    app.shelves["east"].holds(numbered(range(3)), mark="1")
    app.heal()
    app.later(minutes=61)
    commits = app.marks()
    assert {start.partitions for start in app.heal()} == {("east",), ("west",)}
    assert app.marks() == commits, "an unchanged source commits nothing"
    newest = shown(app.events("references")[0])
    assert (newest["reason"], newest["stored"], newest["changed"]) == ("scrape due", 0, False)


def test_heal__hand_offs_are_taken_away__scrapes_all_the_same(app: ReferencesApp):
    app.shelves["east"].holds(numbered(range(3)), mark="1")
    app.heal()
    take_branch_away(app.service.ledger.engine, "handoffs")
    app.later(minutes=61)
    app.shelves["west"].holds(numbered(range(2)))
    app.heal()
    assert [run.status for run in runs(app)] == [dg.DagsterRunStatus.SUCCESS] * len(runs(app))
    assert len(app.references()) == 5
    assert app.sync("east").handoff_available is False, "also where the source was not modified"


def test_pass__source_was_removed_while_its_scrape_waited__starts_and_reports_none_of_it(app: ReferencesApp):
    """A run for a partition that is not there would fail the tick with the runs of all sources."""
    app.shelves["east"].holds(numbered(range(2)))
    app.shelves["west"].holds({}, fault="down")
    app.heal()
    [deferred] = app.service.ledger.find("references.scrape", key_prefix="references:west")
    assert deferred.status == "deferred"
    app.set_sources("east")
    assert app.starts() == ()
    assert app.service.ledger.get(deferred.id).status == "superseded"  # type: ignore[union-attr]
    assert find_problems(app.service) == []


def test_heal__on_either_database__ends_in_documents(
    tmp_path: Path, ledger_url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PERENNIAL_DATABASE_URL", ledger_url)  # Dagster hands a secret on by its name
    app = ReferencesApp(tmp_path / "home", ledger_url, NOW, ("east",))
    app.shelves["east"].holds(numbered(range(3)))
    app.store_without_handoffs("east")
    app.heal()
    assert len(app.texts()) == 3
    assert find_problems(app.service) == []
    app.service.ledger.close()

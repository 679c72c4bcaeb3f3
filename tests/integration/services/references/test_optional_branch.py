"""The tables of hand-offs taken away and brought back: references and jobs stay, on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from domain.references.tables import DOCUMENTS
from domain.shared.error import InvalidInput, PermanentRunnerError
from resources.database.engine import writing
from resources.database.migrate import branches, bring_branch_back, migrate, take_branch_away
from services.partitions import Attempt
from services.reconcile import reconcile
from services.references.explain import explain
from services.references.handoff import drain_handoffs
from services.references.handoff_store import HandoffsUnavailable
from services.references.ingest import drain_jobs
from services.references.reconcile import ReferencesReconciler
from services.references.scrape import scrape_sources
from services.references.service import ReferencesService
from services.references.sync import sync
from tests.command import said
from tests.integration.conftest import SettableClock
from tests.integration.services.references.fake_source import FakeScraper, FakeTarget

OURS = {"ingestion_handoffs", "handoff_scrape"}


def test_branch__taken_away__sync_stores_and_says_that_hand_off_is_unavailable(
    service: ReferencesService, scraper: FakeScraper
):
    engine = service.ledger.engine
    scraper.put(a="1")
    sync(service, "atlas", by="test")
    take_branch_away(engine, "handoffs")
    try:
        assert not OURS & set(inspect(engine).get_table_names())
        scraper.put(b="1")
        outcome = sync(service, "atlas", by="test")
        assert (outcome.handoff_available, outcome.stored, outcome.unchanged) == (False, 1, 1)
        assert outcome.handoff_completed_count + outcome.handoff_skipped_count == 0
        with pytest.raises(HandoffsUnavailable) as refusal:
            service.store.handoffs.page("atlas", None, None, 10, 0)
        assert refusal.value.reason_code == "handoff_unavailable"
        assert "perennial migrate --up handoffs" in refusal.value.remedy
        assert len(service.ledger.find("references.ingest")) == 1
        plan = reconcile(ReferencesReconciler(service)).plan
        assert [v.reason_code for v in plan.verdicts][1] == "handoff_unavailable"
        assert [pull.kind for pull in ReferencesReconciler(service).pulls] == ["references.ingest"]
    finally:
        bring_branch_back(engine, "handoffs")
    assert set(inspect(engine).get_table_names()) >= OURS
    reconcile(ReferencesReconciler(service))
    drain_handoffs(service, "run-1", 10)
    total, rows = service.store.handoffs.page("atlas", "completed", None, 10, 0)
    assert (total, {row.reference_id for row in rows}) == (2, {"atlas:a", "atlas:b"})
    assert {job.key for job in service.ledger.find("references.ingest")} == {
        "documents:atlas:a",
        "documents:atlas:b",
    }


def test_branch__back_and_nothing_changed_meanwhile__knows_every_content_again(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="1", b="1")
    sync(service, "atlas", by="test")
    take_branch_away(service.ledger.engine, "handoffs")
    bring_branch_back(service.ledger.engine, "handoffs")
    reconcile(ReferencesReconciler(service))
    drain_handoffs(service, "run-1", 10)
    total, rows = service.store.handoffs.page("atlas", "completed", None, 10, 0)
    assert (total, {row.reason_code for row in rows}) == (2, {"ingestion_job_already_active"})
    assert len(service.ledger.find("references.ingest")) == 2


def test_branch__taken_away_with_work_waiting__the_work_ends_after_it_is_back(
    service: ReferencesService, scraper: FakeScraper, monkeypatch: pytest.MonkeyPatch
):
    scraper.put(a="1")
    monkeypatch.setattr("services.references.sync.hand_over_now", lambda *_: {})
    assert sync(service, "atlas", by="test").handoff_queued_count == 1
    engine = service.ledger.engine
    take_branch_away(engine, "handoffs")
    try:
        with pytest.raises(HandoffsUnavailable):
            drain_handoffs(service, "run-1", 10)
    finally:
        bring_branch_back(engine, "handoffs")
    [row] = service.ledger.find("references.handoff")
    service.ledger.retry(row.id)
    drain_handoffs(service, "run-2", 10)
    row = service.ledger.get_all([row.id])[row.id]
    assert (row.status, row.reason_code) == ("skipped", "handoff_gone")


def test_branch__back_without_a_change_in_between__every_hand_off_is_made_again(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="1", b="1")
    sync(service, "atlas", by="test")
    drain_jobs(service, "run-1", 10, lambda _: None)
    reconcile(ReferencesReconciler(service))
    take_branch_away(service.ledger.engine, "handoffs")
    bring_branch_back(service.ledger.engine, "handoffs")
    reconcile(ReferencesReconciler(service))
    drain_handoffs(service, "run-2", 10)
    total, rows = service.store.handoffs.page("atlas", "completed", None, 10, 0)
    assert (total, {row.reason_code for row in rows}) == (2, {"content_already_ready"})
    service.lake.replace(DOCUMENTS.name, "atlas", DOCUMENTS.schema.empty_table(), allow_empty=True)
    reconcile(ReferencesReconciler(service))
    drain_jobs(service, "run-3", 10, lambda _: None)
    assert service.lake.version(DOCUMENTS.name, "atlas").rows == 2


def test_branch__back__gives_no_id_of_a_hand_off_again(service: ReferencesService, scraper: FakeScraper):
    service.target = FakeTarget(fails={"atlas:a": [PermanentRunnerError("refuses a")]})
    scraper.put(a="1", b="1")
    sync(service, "atlas", by="test")
    take_branch_away(service.ledger.engine, "handoffs")
    bring_branch_back(service.ledger.engine, "handoffs")
    scraper.holds = {}
    scraper.put(c="2")
    assert sync(service, "atlas", by="test").handoff_failed_count == 0
    story = explain(service, "atlas:c")
    assert [step.error for step in story.steps if step.what == "hand-off" and step.error] == []
    assert min(one.id for one in service.store.handoffs.of_reference("atlas:c")) > 2


def test_migrate__branch_was_taken_away__leaves_it_away(service: ReferencesService):
    engine = service.ledger.engine
    take_branch_away(engine, "handoffs")
    try:
        migrate(engine)
        assert branches(engine) == {"handoffs": False}
    finally:
        bring_branch_back(engine, "handoffs")
    assert branches(engine) == {"handoffs": True}
    with pytest.raises(InvalidInput) as refusal:
        take_branch_away(engine, "work")
    assert refusal.value.reason_code == "unknown_branch"


def test_migrate_command__down_and_up__says_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PERENNIAL_HOME", str(tmp_path / "home"))
    assert said("migrate", "--json").json["branches"] == {"handoffs": True}
    assert said("migrate", "--down", "handoffs", "--json").json["branches"] == {"handoffs": False}
    assert "without handoffs" in said("migrate").out
    assert said("migrate", "--up", "handoffs", "--json").json["branches"] == {"handoffs": True}
    assert said("migrate", "--down", "work").code != 0


def test_handoffs__updated_by_anybody__move_updated_at_on_postgres(
    service: ReferencesService, scraper: FakeScraper, clock: SettableClock
):
    scraper.put(a="1")
    sync(service, "atlas", by="test")
    [before] = service.store.handoffs.of_reference("atlas:a")
    clock.advance(minutes=1)
    if service.ledger.engine.dialect.name == "postgresql":
        with writing(service.ledger.engine) as connection:
            connection.execute(text("UPDATE ingestion_handoffs SET error = 'by hand'"))
    else:
        service.ledger.retry(before.work_id or 0)
        drain_handoffs(service, "run-1", 10)
    [after] = service.store.handoffs.of_reference("atlas:a")
    assert after.updated_at > before.updated_at
    assert after.created_at == before.created_at


def test_ingestion_jobs__after_a_sync__is_a_view_of_the_jobs(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="1", b="1")
    scrape_sources(service, ["atlas"], Attempt("run-1"), lambda _: None)

    def jobs() -> list[tuple[str, str]]:
        with service.ledger.engine.connect() as connection:
            query = text("SELECT reference_id, status FROM ingestion_jobs ORDER BY reference_id")
            return [(row[0], row[1]) for row in connection.execute(query)]

    assert jobs() == [("atlas:a", "queued"), ("atlas:b", "queued")]
    with service.ledger.lease_due("references.ingest", "run-2", 10) as lease:
        assert jobs() == [("atlas:a", "running"), ("atlas:b", "running")]
        lease.fail("documents:atlas:b", InvalidInput("no text"))
    assert jobs() == [("atlas:a", "ready"), ("atlas:b", "failed")]

"""Ingestion jobs: what becomes of each, whatever happens to it, on both databases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from domain.references.documents import Document, Reference, clean
from domain.references.jobs import INGEST
from domain.references.tables import DOCUMENTS
from domain.shared.work import Work
from resources.ledger.model import LeaseLost
from services.partitions import Attempt, PartitionReport
from services.reconcile import reconcile
from services.references import ingest
from services.references.handoff import drain_handoffs
from services.references.ingest import Drained, drain_jobs
from services.references.ingest_sources import count_without_document
from services.references.reconcile import ReferencesReconciler
from services.references.scrape import scrape_sources
from services.references.service import ReferencesService
from services.references.sync import sync
from tests.integration.services.references.fake_source import FakeScraper
from tests.integration.services.references.shelf import ingest as fails_as_texts_say


def drain(service: ReferencesService, run: str = "run 1", seconds: float = 60.0) -> Drained:
    return drain_jobs(service, run, seconds, lambda _: None)


def texts(service: ReferencesService) -> dict[str, str]:
    rows = service.lake.query("SELECT reference_id, text FROM refs.documents ORDER BY ALL").to_pylist()
    return {row["reference_id"]: row["text"] for row in rows}


def jobs(service: ReferencesService) -> dict[str, list[tuple[str, str]]]:
    """By reference, the status and the reason of its jobs, oldest first."""
    found: dict[str, list[tuple[str, str]]] = {}
    for row in reversed(service.ledger.find(INGEST, limit=None)):
        found.setdefault(row.partition, []).append((row.status, row.reason_code))
    return found


@pytest.fixture
def synced(service: ReferencesService, scraper: FakeScraper) -> ReferencesService:
    scraper.put(a="one", b="<p>two</p>")
    sync(service, "atlas", by="test")
    return service


def test_drain_jobs__new_contents__become_documents_of_their_scrape(synced: ReferencesService):
    reports: list[PartitionReport] = []
    done = drain_jobs(synced, "run 1", 60.0, reports.extend)
    assert (done.made, texts(synced)) == (2, {"atlas:a": "one", "atlas:b": "two"})
    [row] = synced.lake.query("SELECT DISTINCT scrape_run_id, ingested_by FROM refs.documents").to_pylist()
    assert row["ingested_by"] == "plain 1"
    assert synced.store.scrape_run(row["scrape_run_id"])
    assert [(r.partition, r.reason, r.version.rows) for r in reports] == [
        ("atlas", "ingestion_job_queued", 2)
    ]
    assert not reconcile(ReferencesReconciler(synced)).starts


def test_drain_jobs__nothing_is_due__commits_nothing(synced: ReferencesService):
    drain(synced)
    before = synced.lake.marks([DOCUMENTS.name])
    assert drain(synced) == Drained()
    assert synced.lake.marks([DOCUMENTS.name]) == before


def test_drain_jobs__content_changed_since__makes_the_newest_only(
    synced: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="newer")
    sync(synced, "atlas", by="test")
    assert drain(synced).made == 2
    assert texts(synced)["atlas:a"] == "newer"


def test_drain_jobs__person_retries_a_job_of_older_content__replaces_nothing(
    synced: ReferencesService, scraper: FakeScraper
):
    drain(synced)
    [old] = [row for row in synced.ledger.find(INGEST) if row.partition == "atlas:a"]
    scraper.put(a="newer")
    sync(synced, "atlas", by="test")
    drain(synced)
    synced.ledger.retry(old.id)
    again = drain(synced)
    assert (again.made, again.superseded) in {(0, 1), (1, 0)}
    assert texts(synced)["atlas:a"] == "newer"


def test_drain_jobs__content_changes_while_its_job_runs__runs_once_more_with_the_newest(
    synced: ReferencesService, scraper: FakeScraper
):
    """One waiting job with the newest content runs after the one that runs."""
    contents = iter(["second", "third"])

    def slow(reference: Reference) -> Document:
        if reference.id == "atlas:a":
            for text in contents:
                scraper.put(a=text)
                sync(synced, "atlas", by="test")
        return clean(reference)

    synced.ingest = slow
    drain(synced)
    assert texts(synced)["atlas:a"] == "third"
    assert [status for status, _ in jobs(synced)["atlas:a"]] == ["completed", "completed"]


def test_drain_jobs__its_lease_was_lost__replaces_nothing(synced: ReferencesService):
    """An older job that ends late: another run did its work meanwhile."""

    def late(reference: Reference) -> Document:
        synced.ledger.sweep(finished_runs={"run 1"})
        for row in synced.ledger.not_due(INGEST):
            synced.ledger.hurry([row])
        synced.ingest = clean
        drain(synced, "run 2")
        return Document("late", "late")

    synced.ingest = late
    with pytest.raises(LeaseLost):
        drain(synced)
    assert texts(synced) == {"atlas:a": "one", "atlas:b": "two"}


def test_drain_jobs__function_fails__each_job_ends_as_its_error_says(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="fine", b="busy", c="wrong", d="crash")
    sync(service, "atlas", by="test")
    service.ingest = fails_as_texts_say
    done = drain(service)
    assert (done.made, len(done.errors)) == (1, 3)
    assert jobs(service) == {
        "atlas:a": [("completed", "")],
        "atlas:b": [("deferred", "scrape_down")],
        "atlas:c": [("failed", "unreadable")],
        "atlas:d": [("deferred", "unclassified")],
    }
    assert count_without_document(service, "atlas") == 0


def test_drain_jobs__nothing_succeeds__raises_the_first_error(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="crash", b="crash")
    sync(service, "atlas", by="test")
    service.ingest = fails_as_texts_say
    with pytest.raises(ZeroDivisionError):
        drain(service)
    assert {status for [(status, _)] in jobs(service).values()} == {"deferred"}


def test_drain_jobs__interrupted__gives_the_work_back_and_counts_no_attempt(synced: ReferencesService):
    """As SIGTERM ends a run."""

    def interrupted(_: Reference) -> Document:
        raise KeyboardInterrupt

    synced.ingest = interrupted
    with pytest.raises(KeyboardInterrupt):
        drain(synced)
    rows: list[Work] = synced.ledger.find(INGEST)
    assert {(row.status, row.attempts) for row in rows} == {("queued", 0)}
    synced.ingest = clean
    assert drain(synced).made == 2


def test_drain_jobs__function_is_slow__gives_the_rest_of_a_batch_back(
    service: ReferencesService, scraper: FakeScraper, monkeypatch: pytest.MonkeyPatch
):
    scraper.fill(4)
    sync(service, "atlas", by="test")
    monkeypatch.setattr(ingest, "COMMIT_AFTER", 0.0)
    assert drain(service, seconds=0.01).made == 0
    assert {(row.status, row.attempts) for row in service.ledger.find(INGEST)} == {("queued", 0)}
    monkeypatch.setattr(ingest, "COMMIT_AFTER", 30.0)
    assert drain(service).made == 4


def test_drain_jobs__time_is_over__leaves_the_rest_to_the_next_run(
    service: ReferencesService, scraper: FakeScraper, monkeypatch: pytest.MonkeyPatch
):
    scraper.fill(5)
    sync(service, "atlas", by="test")
    monkeypatch.setattr(ingest, "BATCH", 2)
    assert drain(service, seconds=0.0).made == 0
    assert service.ledger.backlog(INGEST)["atlas"].due == 5
    assert drain(service).made == 5


def test_drain_jobs__some_sources__leaves_others_alone(synced: ReferencesService):
    assert drain_jobs(synced, "run 1", 60.0, lambda _: None, ["herald"]).made == 0
    assert drain_jobs(synced, "run 1", 60.0, lambda _: None, ["atlas"]).made == 2


def test_drain_jobs__documents_are_corrupt__are_made_again(synced: ReferencesService, tmp_path: Path):
    drain(synced)
    for file in tmp_path.rglob("refs/documents/data/**/*.parquet"):
        file.unlink()
    assert synced.lake.version(DOCUMENTS.name, "atlas").corrupt
    [start] = reconcile(ReferencesReconciler(synced)).starts
    assert start.pulls == INGEST
    drain(synced)
    assert texts(synced) == {"atlas:a": "one", "atlas:b": "two"}
    assert not reconcile(ReferencesReconciler(synced)).plan.due


def test_pass__documents_were_changed_by_hand__are_made_again(synced: ReferencesService):
    drain(synced)
    rows = synced.lake.query("SELECT * FROM refs.documents WHERE reference_id = 'atlas:a'").to_pylist()
    forged = pa.Table.from_pylist([rows[0] | {"text": "forged"}], schema=DOCUMENTS.schema)
    synced.lake.merge(DOCUMENTS.name, forged)
    [start] = reconcile(ReferencesReconciler(synced)).starts
    assert start.pulls == INGEST
    drain(synced)
    assert texts(synced)["atlas:a"] == "one"
    assert not reconcile(ReferencesReconciler(synced)).starts


def test_pass__documents_are_gone__are_made_again(synced: ReferencesService):
    drain(synced)
    nothing = DOCUMENTS.schema.empty_table()
    synced.lake.replace(DOCUMENTS.name, "atlas", nothing, allow_empty=True)
    assert count_without_document(synced, "atlas") == 2
    assert [start.pulls for start in reconcile(ReferencesReconciler(synced)).starts] == [INGEST]
    drain(synced)
    assert texts(synced) == {"atlas:a": "one", "atlas:b": "two"}


def test_drain_jobs__two_drains_at_once__record_the_version_that_is_there(
    synced: ReferencesService, monkeypatch: pytest.MonkeyPatch
):
    """The one that commits first may record last."""
    drained: list[Drained] = []

    def meanwhile(_: object) -> None:
        """Between the commit of the first run and its record the second one does everything."""
        if not drained:
            drained.append(drain_jobs(replace(synced), "run 2", 60.0, lambda _: None))

    monkeypatch.setattr(ingest, "BATCH", 1)
    drain_jobs(synced, "run 1", 60.0, meanwhile)
    assert drained[0].made == 1
    state = synced.observe().sources["atlas"].documents
    assert state.version == state.recorded


def test_pass__references_are_corrupt__asks_for_a_scrape_that_makes_them_again(
    synced: ReferencesService, tmp_path: Path
):
    drain(synced)
    for file in tmp_path.rglob("refs/references/data/**/*.parquet"):
        file.unlink()
    [start] = reconcile(ReferencesReconciler(synced)).starts
    assert (start.tables, start.partitions) == (("references",), ("atlas",))
    attempt = Attempt("run 3", dispatch_id=start.dispatch_id)
    scrape_sources(synced, ["atlas"], attempt, lambda _: None)
    drain_handoffs(synced, "run 4", 10)
    drain(synced)
    assert not reconcile(ReferencesReconciler(synced)).starts
    assert texts(synced) == {"atlas:a": "one", "atlas:b": "two"}


def test_sync__documents_are_corrupt__hands_new_content_over_all_the_same(
    synced: ReferencesService, scraper: FakeScraper, tmp_path: Path
):
    drain(synced)
    for file in tmp_path.rglob("refs/documents/data/**/*.parquet"):
        file.unlink()
    scraper.put(c="three")
    assert sync(synced, "atlas", by="test").handoff_completed_count == 1
    drain(synced)
    reconcile(ReferencesReconciler(synced))
    drain(synced)
    assert texts(synced) == {"atlas:a": "one", "atlas:b": "two", "atlas:c": "three"}

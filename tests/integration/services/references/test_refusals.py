"""Work of references that failed or was cancelled, hand-offs without work, and scrapes that died."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.references.jobs import HANDOFF, INGEST
from domain.shared.error import InvalidInput, TransientResourceError
from services.partitions import Attempt
from services.reconcile import reconcile
from services.references.findings import find_problems
from services.references.handoff import drain_handoffs
from services.references.ingest_sources import count_without_document
from services.references.reconcile import ReferencesReconciler
from services.references.scrape import scrape_sources
from services.references.service import ReferencesService
from services.references.sync import sync
from tests.integration.conftest import SettableClock
from tests.integration.services.references.fake_source import FakeScraper, FakeTarget

DOWN = TransientResourceError("down")


def die(*_: object) -> None:
    raise KeyboardInterrupt


def problems(service: ReferencesService) -> list[tuple[str, str, str]]:
    return [(f.subject, f.health, f.reason_code) for f in find_problems(service)]


def pulls(service: ReferencesService) -> set[str]:
    return {start.pulls for start in reconcile(ReferencesReconciler(service)).starts}


def test_findings__a_thousand_newer_failures_of_another_source__hide_none(
    service: ReferencesService, scraper: FakeScraper
):
    other = FakeScraper("herald")
    service.scrapers = {"atlas": scraper, "herald": other}
    scraper.put(a="1", b="1")
    other.fill(1001)
    scrape_sources(service, ["atlas", "herald"], Attempt("run-0"), lambda _: None)
    for source in ("atlas", "herald"):
        with service.ledger.lease_due(INGEST, f"run-{source}", 5000, tenants=[source]) as lease:
            for key in lease.keys:
                lease.fail(key, InvalidInput("bad"))
    assert {subject for subject, health, _ in problems(service) if health == "broken"} == {
        "documents:atlas",
        "documents:herald",
    }
    assert count_without_document(service, "atlas") == 0


def test_findings__person_cancelled_a_job__says_so(service: ReferencesService, scraper: FakeScraper):
    scraper.put(a="1")
    scrape_sources(service, ["atlas"], Attempt("run-0"), lambda _: None)
    [job] = service.ledger.find(INGEST)
    service.ledger.cancel(job.id)
    assert problems(service) == [("documents:atlas", "explained", "called_off")]
    assert count_without_document(service, "atlas") == 0


def test_findings__person_cancelled_a_hand_off__ends_it_and_a_retry_hands_it_over(
    service: ReferencesService, scraper: FakeScraper, monkeypatch: pytest.MonkeyPatch
):
    scraper.put(a="1")
    with monkeypatch.context() as context:
        context.setattr("services.references.sync.hand_over_now", lambda *_: {})
        scrape_sources(service, ["atlas"], Attempt("run-0"), lambda _: None)
    [work] = service.ledger.find(HANDOFF)
    service.ledger.cancel(work.id)
    assert HANDOFF in pulls(service)
    drain_handoffs(service, "run-1", 10)
    [row] = service.store.handoffs.of_reference("atlas:a")
    assert (row.status, row.reason_code) == ("failed", "permanent_error")
    assert problems(service) == [("handoffs:atlas", "explained", "called_off")]
    assert HANDOFF not in pulls(service)
    service.ledger.retry(work.id)
    drain_handoffs(service, "run-2", 10)
    [row] = service.store.handoffs.of_reference("atlas:a")
    assert (row.status, row.reason_code) == ("completed", "ingestion_job_queued")


def test_drain_handoffs__killed_between_the_hand_off_and_its_work__makes_the_work(
    service: ReferencesService, scraper: FakeScraper, machine: SettableClock, monkeypatch: pytest.MonkeyPatch
):
    service.target = FakeTarget(fails={"atlas:a": [DOWN] * 3})
    scraper.put(a="1")
    scrape_sources(service, ["atlas"], Attempt("run-0"), lambda _: None)
    with monkeypatch.context() as context:
        context.setattr("services.references.sync.enqueue_handoffs", die)
        with pytest.raises(KeyboardInterrupt):
            sync(service, "atlas", by="a person")
    machine.advance(minutes=3)
    assert HANDOFF in pulls(service)
    drain_handoffs(service, "run-1", 10)
    [row] = service.store.handoffs.of_reference("atlas:a")
    assert (row.status, row.reason_code) == ("completed", "ingestion_job_queued")
    assert HANDOFF not in pulls(service)


def test_sync__a_run_drains_beside_it__counts_what_is_true(
    service: ReferencesService, scraper: FakeScraper, monkeypatch: pytest.MonkeyPatch
):
    store = type(service.store.handoffs)
    known = store.known

    def beside(*arguments):  # type: ignore[no-untyped-def]
        monkeypatch.setattr(store, "known", known)
        assert pulls(service) == {""}  # only the scrape that is due
        drain_handoffs(service, "run-9", 10)
        return known(*arguments)

    monkeypatch.setattr(store, "known", beside)
    scraper.put(a="1", b="1")
    outcome = sync(service, "atlas", by="test")
    assert (outcome.handoff_completed_count, outcome.handoff_skipped_count) == (2, 0)


def test_scrape_run__killed__ends_as_lost_and_is_deleted(
    service: ReferencesService, scraper: FakeScraper, machine: SettableClock, monkeypatch: pytest.MonkeyPatch
):
    scraper.put(a="1")
    with monkeypatch.context() as context:
        context.setattr("services.references.sync.enqueue_handoffs", die)
        with pytest.raises(KeyboardInterrupt):
            sync(service, "atlas", by="a person")
    [killed] = service.store.find_runs()
    assert killed.status == "running"
    machine.advance(minutes=16)
    reconcile(ReferencesReconciler(service))
    [killed] = service.store.find_runs()
    assert (killed.status, killed.reason_code) == ("failed", "worker_lost")
    sync(service, "atlas", by="test")
    assert service.store.delete_scrape_runs(service.clock() + timedelta(seconds=1)) == 1


def test_sync__unchanged_references__writes_no_hand_off_and_keeps_who_met_it(
    service: ReferencesService, scraper: FakeScraper, monkeypatch: pytest.MonkeyPatch
):
    scraper.put(a="1", b="1")
    sync(service, "atlas", by="test")
    put, written = type(service.store.handoffs).put, []

    def counted(store, contents, number):  # type: ignore[no-untyped-def]
        written.extend(contents)
        return put(store, contents, number)

    monkeypatch.setattr(type(service.store.handoffs), "put", counted)
    scraper.put(c="1")
    again = sync(service, "atlas", by="test")
    assert [one.reference_id for one in written] == ["atlas:c"]
    assert service.store.handoffs.page("atlas", None, again.scrape_run_id, 10, 0)[0] == 3
    assert (again.handoff_completed_count, again.handoff_skipped_count) == (1, 2)

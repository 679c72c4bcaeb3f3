"""A sync: what it stores, what an unchanged source costs, and what a crash or another sync leaves behind."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from domain.references.handoffs import Content
from domain.references.jobs import HANDOFF
from domain.references.tables import DOCUMENTS, REFERENCES
from domain.shared.error import InvalidInput, TransientResourceError
from resources.scraping.reference import Checkpoint
from services.partitions import Attempt, PartitionReport
from services.reconcile import reconcile
from services.references.handoff import drain_handoffs
from services.references.missing import make_handoffs, queue_documents
from services.references.reconcile import ReferencesReconciler
from services.references.scrape import scrape_sources
from services.references.service import Outcomes, ReferencesService
from services.references.sync import sync
from tests.integration.conftest import SettableClock
from tests.integration.services.references.fake_source import FakeScraper


class Dying:
    """A target under which the process dies."""

    def queue(self, contents: Sequence[Content]) -> Outcomes:
        raise KeyboardInterrupt(len(contents))


def stored(service: ReferencesService) -> dict[str, str]:
    """The payloads in the lake, by reference."""
    rows = service.lake.query("SELECT reference_id, payload FROM refs.references ORDER BY ALL").to_pylist()
    return {row["reference_id"]: row["payload"] for row in rows}


def codes(service: ReferencesService) -> list[str]:
    """One pass; the reason codes of its verdicts: references, hand-offs, documents."""
    return [v.reason_code for v in reconcile(ReferencesReconciler(service)).plan.verdicts]


def test_sync__new_references__stores_and_hands_over_each_once(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="one", b="two")
    first = sync(service, "atlas", by="test")
    assert (first.stored, first.changed, first.unchanged) == (2, 0, 0)
    assert first.handoff_completed_count == 2
    again = sync(service, "atlas", by="test")
    assert (again.stored, again.changed, again.unchanged) == (0, 0, 2)
    assert again.handoff_skipped_count == 2
    jobs = service.ledger.find("references.ingest")
    assert sorted(row.key for row in jobs) == ["documents:atlas:a", "documents:atlas:b"]
    total, rows = service.store.handoffs.page("atlas", None, None, 10, 0)
    assert total == 2
    assert {(r.status, r.reason_code, r.attempts) for r in rows} == {("completed", "ingestion_job_queued", 1)}
    assert stored(service) == {"atlas:a": '{"text":"one"}', "atlas:b": '{"text":"two"}'}


def test_sync__reformatted_content__is_unchanged_and_commits_nothing(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.holds = {"a": {"n": 1, "text": "Zoë", "deep": {"x": [1.0], "y": None}}}
    sync(service, "atlas", by="test")
    before = service.lake.marks([REFERENCES.name])
    scraper.holds = {"a": {"deep": {"y": None, "x": [1]}, "text": "Zoe\u0308", "n": 1.0}}
    again = sync(service, "atlas", by="test")
    assert (again.changed, again.unchanged) == (0, 1)
    assert service.lake.marks([REFERENCES.name]) == before


def test_sync__some_changed__touches_only_what_it_met(service: ReferencesService, scraper: FakeScraper):
    scraper.put(a="1", b="1", gone="1")
    sync(service, "atlas", by="test")
    del scraper.holds["gone"]
    scraper.put(b="2", c="1")
    again = sync(service, "atlas", by="test")
    assert (again.stored, again.changed, again.unchanged) == (1, 1, 1)
    assert set(stored(service)) == {"atlas:a", "atlas:b", "atlas:c", "atlas:gone"}
    _, met = service.store.handoffs.page("atlas", None, again.scrape_run_id, 10, 0)
    assert [row.reference_id for row in met] == ["atlas:a", "atlas:b", "atlas:c"]


def test_sync__unchanged_source__is_free(service: ReferencesService, scraper: FakeScraper):
    scraper.put(a="1")
    scraper.etag = "v1"
    sync(service, "atlas", by="test")
    again = sync(service, "atlas", by="test")
    assert scraper.asked[-1] == (Checkpoint(etag="v1"), False)
    assert (again.touched, again.handoff_skipped_count) == (0, 0)
    whole = sync(service, "atlas", by="test", full=True)
    assert (whole.unchanged, scraper.asked[-1][0]) == (1, Checkpoint())


def test_sync__source_fails_half_way__keeps_what_came_and_says_so(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="1")
    scraper.etag = "v1"
    scraper.error = TransientResourceError("half an answer", reason_code="scrape_incomplete")
    with pytest.raises(TransientResourceError):
        sync(service, "atlas", by="test")
    [run] = service.store.find_runs()
    assert (run.status, run.reason_code) == ("failed", "scrape_incomplete")
    assert run.counts["handoff_completed_count"] == 1
    assert service.ledger.freshness.all("references")[0].last_error == "half an answer"
    scraper.error = None
    sync(service, "atlas", by="test")
    assert scraper.asked[-1] == (Checkpoint(), False)
    assert [one.status for one in service.store.find_runs()] == ["completed", "failed"]


def test_sync__unknown_source__names_those_there_are(service: ReferencesService):
    with pytest.raises(InvalidInput) as refusal:
        sync(service, "atlantis", by="test")
    assert refusal.value.reason_code == "unknown_source"
    assert "atlas" in refusal.value.remedy


def test_sync__another_one_meanwhile__both_end_well_and_the_next_reads_all(
    service: ReferencesService, scraper: FakeScraper
):
    """The first read older content than the second stored meanwhile: it leaves that alone."""
    scraper.put(a="old")
    scraper.etag = "v1"

    def second() -> None:
        scraper.meanwhile = lambda: None
        scraper.put(a="new")
        scraper.etag = "v2"
        assert sync(service, "atlas", by="second").handoff_completed_count == 1

    scraper.meanwhile = second
    first = sync(service, "atlas", by="first")
    assert stored(service) == {"atlas:a": '{"text":"new"}'}
    assert (first.unchanged, first.handoff_skipped_count) == (1, 1)
    sync(service, "atlas", by="third")
    assert scraper.asked[-1] == (Checkpoint(), False)


def test_reconcile__crash_before_hand_off__queues_it(
    service: ReferencesService, scraper: FakeScraper, machine: SettableClock
):
    scraper.put(a="one", b="two")
    service.target = Dying()
    with pytest.raises(KeyboardInterrupt):
        sync(service, "atlas", by="test")
    service.target = None
    machine.advance(minutes=3)
    assert codes(service) == ["scrape_due", "without_handoff", ""]
    drain_handoffs(service, "run-1", 10)
    assert codes(service) == ["scrape_due", "", ""]
    assert service.store.handoffs.page("atlas", "completed", None, 10, 0)[0] == 2


def test_reconcile__crash_between_storing_and_hand_offs__makes_them(
    service: ReferencesService, scraper: FakeScraper, machine: SettableClock, monkeypatch: pytest.MonkeyPatch
):
    scraper.put(a="one", b="two")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(service.store.handoffs), "put", die)
        with pytest.raises(KeyboardInterrupt):
            sync(service, "atlas", by="test")
    assert service.store.handoffs.page("atlas", None, None, 10, 0)[0] == 0
    assert [v.reason_code for v in service.plan().verdicts] == ["scrape_due", "without_handoff", ""]
    drain_handoffs(service, "run-0", 10)  # the sync may be alive: it hands them over itself
    assert service.store.handoffs.page("atlas", None, None, 10, 0)[0] == 0
    assert HANDOFF not in {start.pulls for start in reconcile(ReferencesReconciler(service)).starts}
    machine.advance(minutes=3)
    assert HANDOFF in {start.pulls for start in reconcile(ReferencesReconciler(service)).starts}
    drain_handoffs(service, "run-1", 10)
    assert codes(service) == ["scrape_due", "", ""]
    assert len(service.ledger.find("references.ingest")) == 2


def test_reconcile__content_came_back_and_crash__hands_it_over_again(
    service: ReferencesService, scraper: FakeScraper, machine: SettableClock, monkeypatch: pytest.MonkeyPatch
):
    """The hand-off of this content is there and final, but of an earlier time."""
    for payload in ("A", "B"):
        scraper.put(a=payload)
        sync(service, "atlas", by="test")
    scraper.put(a="A")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(service.store.handoffs), "put", die)
        with pytest.raises(KeyboardInterrupt):
            sync(service, "atlas", by="test")
    machine.advance(minutes=3)
    next(make_handoffs(service))
    [work] = service.ledger.find("references.handoff", status="queued")
    drain_handoffs(service, "run-1", 10)
    [job] = service.ledger.find("references.ingest", status="queued")
    assert work.fingerprint.startswith(job.fingerprint)


def test_scrape_sources__one_fails__syncs_the_others_and_defers_it(service: ReferencesService):
    good, bad = FakeScraper("good"), FakeScraper("bad")
    bad.error = TransientResourceError("the source is down", reason_code="scrape_down")
    good.put(a="1")
    service.scrapers = {"bad": bad, "good": good}
    reports: list[PartitionReport] = []
    with pytest.raises(TransientResourceError, match="is down"):
        scrape_sources(service, ["bad", "good"], Attempt("run-1"), reports.extend)
    assert [(one.partition, one.outcome, one.version.rows) for one in reports] == [("good", "committed", 1)]
    work = {row.key: row.status for row in service.ledger.find("references.scrape")}
    assert work == {"references:bad": "deferred", "references:good": "completed"}


def test_plan__after_a_scrape__is_healthy_until_it_is_due_again(
    service: ReferencesService, scraper: FakeScraper, clock: SettableClock
):
    assert codes(service) == ["missing", "", ""]
    scraper.put(a="1")
    scrape_sources(service, ["atlas"], Attempt("run-1"), lambda _: None)
    assert codes(service) == ["", "", ""]
    clock.advance(minutes=61)
    [verdict, *_] = reconcile(ReferencesReconciler(service)).plan.verdicts
    assert (verdict.state, verdict.reason_code) == ("stale", "scrape_due")


def test_plan__lake_was_changed_by_hand__scrapes_the_source_whole(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="1", b="1")
    scraper.etag = "v1"
    scrape_sources(service, ["atlas"], Attempt("run-1"), lambda _: None)
    rows = service.lake.query("SELECT * FROM refs.references WHERE reference_id = 'atlas:a'")
    service.lake.replace(REFERENCES.name, "atlas", rows)
    assert codes(service) == ["changed", "without_handoff", ""]
    scrape_sources(service, ["atlas"], Attempt("run-2"), lambda _: None)
    assert scraper.asked[-1] == (Checkpoint(), True)
    assert set(stored(service)) == {"atlas:a", "atlas:b"}
    drain_handoffs(service, "run-3", 10)
    assert codes(service) == ["", "", ""]


def test_plan__source_without_references__is_healthy(service: ReferencesService):
    scrape_sources(service, ["atlas"], Attempt("run-1"), lambda _: None)
    assert codes(service) == ["", "", ""]


def test_reconcile__document_is_missing__queues_its_job_again(
    service: ReferencesService, scraper: FakeScraper, clock: SettableClock
):
    scraper.put(a="1", b="1")
    scrape_sources(service, ["atlas"], Attempt("run-1"), lambda _: None)
    with service.ledger.lease_due("references.ingest", "run-2", 10):
        pass  # both jobs end well, and only one document is there
    [row] = service.lake.query("SELECT * FROM refs.references WHERE reference_id = 'atlas:a'").to_pylist()
    made = {"text": "t", "ingested_by": "test", "ingested_at": clock()}
    names = DOCUMENTS.schema.names
    rows = [{name: {**row, **made}[name] for name in names}]
    service.lake.merge(DOCUMENTS.name, pa.Table.from_pylist(rows, schema=DOCUMENTS.schema))
    clock.advance(minutes=5)
    assert "references.ingest" in {one.pulls for one in reconcile(ReferencesReconciler(service)).starts}
    assert queue_documents(service) == 2  # somebody else wrote a: it is made again
    jobs = service.ledger.find("references.ingest", status="queued")
    assert "documents:atlas:b" in {job.key for job in jobs}


def test_sync__ids_that_no_key_can_be__are_left_out_and_named(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="1", **{"": "1", "nul\x00": "1", "長" * 700: "1"})
    outcome = sync(service, "atlas", by="test")
    assert (outcome.stored, outcome.handoff_completed_count, len(outcome.notes)) == (1, 1, 1)
    assert set(stored(service)) == {"atlas:a"}


def test_reconcile__somebody_synced_meanwhile__withdraws_the_scrape_that_waits(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.error = TransientResourceError("the source is down", reason_code="scrape_down")
    with pytest.raises(TransientResourceError):
        scrape_sources(service, ["atlas"], Attempt("run-1"), lambda _: None)
    scraper.error = None
    assert [row.status for row in service.ledger.current(["references.scrape"])] == ["deferred"]
    sync(service, "atlas", by="a person")
    reconcile(ReferencesReconciler(service))
    assert service.ledger.current(["references.scrape"]) == []


def test_reconcile__source_is_gone__dispatches_nothing_of_it(
    service: ReferencesService, scraper: FakeScraper
):
    [start] = reconcile(ReferencesReconciler(service)).starts
    assert start.partitions == ("atlas",)
    service.scrapers = {"herald": FakeScraper("herald")}
    starts = reconcile(ReferencesReconciler(service)).starts
    assert [one.partitions for one in starts] == [("herald",)]
    assert [row.key for row in service.ledger.current(["references.scrape"])] == ["references:herald"]


def test_plan__whole_scrape_failed_half_way__reads_the_whole_source_again(
    service: ReferencesService, scraper: FakeScraper
):
    """What was stored before the failure is recorded, so the partition alone would look whole."""
    scraper.put(a="1", b="1")
    scraper.etag = "v1"
    scrape_sources(service, ["atlas"], Attempt("run-1"), lambda _: None)
    scraper.error = TransientResourceError("half an answer", reason_code="scrape_incomplete")
    with pytest.raises(TransientResourceError):
        sync(service, "atlas", by="a person", full=True)
    scraper.error = None
    assert codes(service)[0] == "scrape_due"
    sync(service, "atlas", by="test")
    assert scraper.asked[-1] == (Checkpoint(), False)
    assert codes(service)[0] == ""

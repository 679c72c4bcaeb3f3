"""Hand-offs: every status and reason, retries, what is superseded, and what a crash leaves behind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.references.handoffs import Handoff, refused
from domain.references.jobs import HANDOFF, INGEST, handoff_id, handoff_key, kinds
from domain.shared.error import InvalidInput, PermanentRunnerError, TransientResourceError
from resources.ledger.lease import Lease
from services.references.handoff import drain_handoffs
from services.references.service import ReferencesService
from services.references.sync import SyncOutcome, sync
from tests.integration.conftest import SettableClock
from tests.integration.services.references.fake_source import FakeScraper, FakeTarget

DOWN = TransientResourceError("the ingestion service does not answer")
REFUSED = PermanentRunnerError("the ingestion service refuses this")


@pytest.fixture
def target(service: ReferencesService) -> FakeTarget:
    target = FakeTarget()
    service.target = target
    return target


def rows(service: ReferencesService) -> dict[str, list[Handoff]]:
    """The hand-offs by the id of their reference at the source, oldest first."""
    found: dict[str, list[Handoff]] = {}
    for row in service.store.handoffs.page("atlas", None, None, 1000, 0)[1]:
        found.setdefault(row.reference_id.removeprefix("atlas:"), []).append(row)
    return found


def ends(service: ReferencesService) -> dict[str, list[tuple[str, str, int]]]:
    return {
        name: [(row.status, row.reason_code, row.attempts) for row in of]
        for name, of in rows(service).items()
    }


def counts(outcome: SyncOutcome) -> tuple[int, int, int, int]:
    """Queued, completed, failed, skipped; their sum is checked."""
    found = (
        outcome.handoff_queued_count,
        outcome.handoff_completed_count,
        outcome.handoff_failed_count,
        outcome.handoff_skipped_count,
    )
    assert sum(found) == outcome.touched
    return found


def events(service: ReferencesService, row: Handoff) -> list[tuple[str, str]]:
    work = service.ledger.find(HANDOFF, handoff_key(row.id))[0]
    return [(event.event, event.reason_code) for event in service.ledger.events(work.id)]


def test_sync__transient_error_without_delay__is_tried_again_at_once(
    service: ReferencesService, scraper: FakeScraper, target: FakeTarget
):
    scraper.put(a="1", b="1")
    target.fails = {"atlas:a": [DOWN, DOWN]}
    assert counts(sync(service, "atlas", by="test")) == (0, 2, 0, 0)
    assert ends(service) == {
        "a": [("completed", "ingestion_job_queued", 3)],
        "b": [("completed", "ingestion_job_queued", 1)],
    }
    assert events(service, rows(service)["a"][0]) == [
        ("created", "queued_from_scrape"),
        ("claimed", "queued_from_scrape"),
        ("deferred", "transient_error"),
        ("claimed", "transient_error"),
        ("deferred", "transient_error"),
        ("claimed", "transient_error"),
        ("completed", "ingestion_job_queued"),
    ]


def test_sync__transient_errors_only__exhausts_three_attempts_and_hands_over_the_others(
    service: ReferencesService, scraper: FakeScraper, target: FakeTarget
):
    scraper.put(a="1", b="1")
    target.fails = {"atlas:a": [DOWN] * 9}
    assert counts(sync(service, "atlas", by="test")) == (0, 1, 1, 0)
    assert ends(service)["a"] == [("failed", "retry_exhausted", 3)]
    assert rows(service)["a"][0].error == DOWN.message
    assert len(target.fails["atlas:a"]) == 6


def test_sync__permanent_error__fails_at_once(
    service: ReferencesService, scraper: FakeScraper, target: FakeTarget
):
    scraper.put(a="1")
    target.fails = {"atlas:a": [REFUSED]}
    assert counts(sync(service, "atlas", by="test")) == (0, 0, 1, 0)
    assert ends(service)["a"] == [("failed", "permanent_error", 1)]
    target.fails = {"atlas:b": [InvalidInput("no such thing")]}
    scraper.put(b="1")
    sync(service, "atlas", by="test")
    assert ends(service)["b"] == [("failed", "permanent_error", 1)]


def test_sync__target_down_as_a_whole__ends_well_and_each_is_tried_again(
    service: ReferencesService, scraper: FakeScraper, target: FakeTarget
):
    scraper.put(a="1", b="1")
    target.raises = [DOWN, RuntimeError("a bug")]
    assert counts(sync(service, "atlas", by="test")) == (0, 2, 0, 0)
    assert {end for of in ends(service).values() for end in of} == {("completed", "ingestion_job_queued", 3)}


def test_sync__transient_error_with_delay__waits_in_the_ledger(
    service: ReferencesService, scraper: FakeScraper, target: FakeTarget, clock: SettableClock
):
    service.ledger = service.ledger.with_kinds(kinds(backoff=timedelta(seconds=20)))
    scraper.put(a="1", b="1")
    target.fails = {"atlas:a": [DOWN, DOWN]}
    assert counts(sync(service, "atlas", by="test")) == (1, 1, 0, 0)
    assert ends(service)["a"] == [("queued", "transient_error", 1)]
    for wait in (20, 40):
        work = service.ledger.find(HANDOFF, status="deferred")[0]
        assert work.not_before - clock() == timedelta(seconds=wait)
        clock.advance(seconds=wait - 1)
        assert not drain_handoffs(service, "early", 10)
        clock.advance(seconds=1)
        drain_handoffs(service, f"after-{wait}", 10)
    assert ends(service)["a"] == [("completed", "ingestion_job_queued", 3)]


def test_kinds__long_delays__are_capped_at_a_minute():
    handoff = next(kind for kind in kinds(9, timedelta(seconds=20)) if kind.name == HANDOFF)
    assert [handoff.transient.delay(n).seconds for n in range(4)] == [20, 40, 60, 60]


def test_sync__failed_transiently_before__is_queued_again(
    service: ReferencesService, scraper: FakeScraper, target: FakeTarget
):
    scraper.put(a="1")
    target.fails = {"atlas:a": [DOWN] * 3}
    sync(service, "atlas", by="test")
    assert counts(sync(service, "atlas", by="test")) == (0, 1, 0, 0)
    assert ends(service)["a"] == [("completed", "ingestion_job_queued", 1)]


def test_sync__failed_permanently_before__stays_failed_until_a_person_retries(
    service: ReferencesService, scraper: FakeScraper, target: FakeTarget
):
    scraper.put(a="1")
    target.fails = {"atlas:a": [REFUSED]}
    sync(service, "atlas", by="test")
    assert counts(sync(service, "atlas", by="test")) == (0, 0, 1, 0)
    [row] = rows(service)["a"]
    assert row.work_id is not None
    service.ledger.retry(row.work_id)
    drain_handoffs(service, "run-1", 10)
    assert ends(service)["a"] == [("completed", "ingestion_job_queued", 1)]
    assert counts(sync(service, "atlas", by="test")) == (0, 0, 0, 1)


def test_sync__content_that_comes_back__is_handed_over_again(
    service: ReferencesService, scraper: FakeScraper, target: FakeTarget
):
    for payload in ("A", "B", "A"):
        scraper.put(a=payload)
        outcome = sync(service, "atlas", by="test")
        assert counts(outcome) == (0, 1, 0, 0)
    assert [one.payload_hash for one in target.got] == [rows(service)["a"][n].payload_hash for n in (0, 1, 0)]
    first = rows(service)["a"][0]
    assert len(service.store.handoffs.scrapes([first.id])[first.id]) == 2


def test_drain__newer_content_was_scraped_meanwhile__is_superseded(
    service: ReferencesService, scraper: FakeScraper, target: FakeTarget, clock: SettableClock
):
    service.ledger = service.ledger.with_kinds(kinds(backoff=timedelta(seconds=20)))
    scraper.put(a="A")
    target.fails = {"atlas:a": [DOWN]}
    sync(service, "atlas", by="test")
    scraper.put(a="B")
    sync(service, "atlas", by="test")
    clock.advance(minutes=1)
    drain_handoffs(service, "run-1", 10)
    assert ends(service)["a"] == [
        ("completed", "superseded_by_newer", 2),
        ("completed", "ingestion_job_queued", 1),
    ]
    assert len(target.got) == 1


def test_sync__content_changes_while_its_job_runs__one_newest_job_waits(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="A")
    sync(service, "atlas", by="test")
    with service.ledger.lease_due(INGEST, "ingesting", 10):
        for payload in ("B", "C"):
            scraper.put(a=payload)
            assert counts(sync(service, "atlas", by="test")) == (0, 1, 0, 0)
        newest = rows(service)["a"][-1].payload_hash
        [waiting] = service.ledger.find(INGEST, status="queued")
        assert waiting.fingerprint == newest
        assert not service.ledger.claim(INGEST, holder="worker:x", limit=10)


def test_sync__same_content_while_its_job_is_active__is_skipped(
    service: ReferencesService, scraper: FakeScraper
):
    scraper.put(a="A")
    sync(service, "atlas", by="test")
    [row] = rows(service)["a"]
    retried = service.ledger.retry(row.work_id or 0)  # a person hands it over again
    drain_handoffs(service, "run-1", 10)
    assert ends(service)["a"] == [("completed", "ingestion_job_already_active", 1)]
    assert service.ledger.get(retried.id).reason_code == "ingestion_job_already_active"  # type: ignore[union-attr]
    assert len(service.ledger.find(INGEST)) == 1


@pytest.mark.parametrize("moment", ["before", "after"])
def test_drain__holder_died_around_the_final_status__hands_over_once(
    service: ReferencesService,
    scraper: FakeScraper,
    target: FakeTarget,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    machine: SettableClock,
    clock: SettableClock,
):
    scraper.put(a="A", b="B")
    real = type(service.store.handoffs).end

    def die(store: object, *values: object) -> None:
        if moment == "after":
            real(store, *values)  # type: ignore[arg-type]
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(type(service.store.handoffs), "end", die)
        patched.setattr(Lease, "__exit__", lambda lease, *_: lease._stop.set())
        with pytest.raises(Died):
            sync(service, "atlas", by="test")
    machine.advance(minutes=3)
    service.ledger.sweep(finished_runs=())
    clock.advance(minutes=3)
    before = len(target.got)
    drain_handoffs(service, "run-2", 10)
    assert {end[:2] for of in ends(service).values() for end in of} == {("completed", "ingestion_job_queued")}
    assert {row.status for row in service.ledger.find(HANDOFF)} == {"completed"}
    assert len(target.got) - before == (0 if moment == "after" else 2)


class Died(BaseException):
    """The process is killed here."""


def test_sync__its_work_was_cancelled__fails_until_a_person_retries(
    service: ReferencesService, scraper: FakeScraper, target: FakeTarget, clock: SettableClock
):
    service.ledger = service.ledger.with_kinds(kinds(backoff=timedelta(seconds=20)))
    scraper.put(a="1")
    target.fails = {"atlas:a": [DOWN]}
    sync(service, "atlas", by="test")
    [row] = rows(service)["a"]
    service.ledger.cancel(row.work_id or 0)
    assert counts(sync(service, "atlas", by="test")) == (0, 0, 1, 0)
    assert ends(service)["a"] == [("failed", "permanent_error", 1)]
    service.ledger.retry(row.work_id or 0)
    drain_handoffs(service, "run-1", 10)
    assert ends(service)["a"] == [("completed", "ingestion_job_queued", 1)]


def test_hand_over__lease_was_given_to_another__a_late_answer_changes_nothing(
    service: ReferencesService,
    scraper: FakeScraper,
    target: FakeTarget,
    clock: SettableClock,
    machine: SettableClock,
    monkeypatch: pytest.MonkeyPatch,
):
    store = service.store.handoffs
    scraper.put(a="1")
    with monkeypatch.context() as context:
        context.setattr("services.references.sync.hand_over_now", lambda *_: {})
        sync(service, "atlas", by="test")
    late = service.ledger.lease_due(HANDOFF, "worker:late", 1, heartbeat=False)
    late.__enter__()
    [(key, work)] = late.work.items()
    number = handoff_id(key)
    store.begin({number: work})
    machine.advance(hours=1)
    service.ledger.sweep(finished_runs=())
    clock.advance(hours=1)
    drain_handoffs(service, "run-2", 10)
    assert ends(service)["a"][0][:2] == ("completed", "ingestion_job_queued")
    store.end({number: refused(DOWN, 1, 3)}, {number: work})
    store.begin({number: work})
    assert ends(service)["a"][0][:2] == ("completed", "ingestion_job_queued")

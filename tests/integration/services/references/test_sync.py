"""A sync: what it stores, what it hands over, and the four counts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from domain.references.handoffs import Content
from services.reconcile import reconcile
from services.references.handoff import drain_handoffs
from services.references.reconcile import ReferencesReconciler
from services.references.service import Outcomes, ReferencesService
from services.references.sync import sync
from tests.integration.services.references.fake_source import FakeScraper


class Dying:
    """A target under which the process dies."""

    def queue(self, contents: Sequence[Content]) -> Outcomes:
        raise KeyboardInterrupt(len(contents))


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


def test_reconcile__crash_before_hand_off__queues_it(service: ReferencesService, scraper: FakeScraper):
    scraper.put(a="one", b="two")
    service.target = Dying()
    with pytest.raises(KeyboardInterrupt):
        sync(service, "atlas", by="test")
    service.target = None
    reconcile(ReferencesReconciler(service))
    drain_handoffs(service, "run-1", 10)
    total, _ = service.store.handoffs.page("atlas", "completed", None, 10, 0)
    assert total == 2
    again = reconcile(ReferencesReconciler(service))
    assert [v.reason_code for v in again.plan.verdicts] == ["scrape_due", "", ""]

"""The work of hand-offs and of ingestion jobs, as it is requested of the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from domain.references.handoffs import JOB_QUEUED, QUEUED_FROM_SCRAPE, Content, Handoff, given_up
from domain.references.jobs import HANDOFF, INGEST, handoff_key, ingest_key
from domain.shared.work import WorkRequest

if TYPE_CHECKING:
    from services.references.service import ReferencesService

BATCH = 5_000
"""Contents that are handed over together."""


def job_request(content: Content) -> WorkRequest:
    """The ingestion job of a content."""
    return WorkRequest(
        INGEST,
        ingest_key(content.reference_id),
        content.payload_hash,
        JOB_QUEUED,
        tenant=content.source,
        pipelines=(content.scrape_run_id,),
    )


def enqueue_handoffs(service: ReferencesService, handoffs: Iterable[Handoff], *pipelines: str) -> None:
    """Make sure that there is work for each of these that is not final."""
    waiting = {handoff_key(one.id): one for one in handoffs if not one.final}
    report = service.ledger.enqueue([_work_request(one, pipelines) for one in waiting.values()])
    if report.refused:  # given up after many deaths, or cancelled by a person
        works = {waiting[row.key].id: row for row in report.refused}
        ended = {number: given_up(row.id, row.status) for number, row in works.items()}
        service.store.handoffs.end(ended, works, waiting=True)


def _work_request(handoff: Handoff, pipelines: Sequence[str]) -> WorkRequest:
    # The scrape is part of it: what is queued again after it failed is another request.
    fingerprint = f"{handoff.payload_hash}@{handoff.scrape_run_id}"
    return WorkRequest(
        HANDOFF,
        handoff_key(handoff.id),
        fingerprint,
        QUEUED_FROM_SCRAPE,
        tenant=handoff.source,
        pipelines=(*pipelines, handoff.scrape_run_id),
    )

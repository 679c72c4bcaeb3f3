"""What a person or a program requests though no plan wants it: a scrape that a run is to do."""

from __future__ import annotations

from dataclasses import dataclass

from domain.references.jobs import SCRAPE, scrape_key
from domain.shared.work import ACTIVE, RUNNING, Work, WorkRequest
from resources.ledger.model import REQUESTED
from resources.ledger.pipelines import new_pipeline_id
from services.references.service import ReferencesService

FULL = "full"
"""The parameter of work that has a source read whole."""


@dataclass(frozen=True)
class RequestedScrape:
    work: Work
    pipeline_id: str


def request_scrape(service: ReferencesService, source: str, *, full: bool = False) -> RequestedScrape:
    """Request that a source is scraped by the next run. What waits or runs already is not requested twice."""
    service.require(source)
    ledger, key = service.ledger, scrape_key(source)
    active = [row for row in ledger.current((SCRAPE,)) if row.key == key and row.status in ACTIVE]
    known = ledger.pipelines.of([row.id for row in active])
    running = next((row for row in active if row.status == RUNNING), None)
    if running is not None and known.get(running.id):
        return RequestedScrape(running, max(known[running.id]))
    pipeline = max((one for of in known.values() for one in of), default=None) or new_pipeline_id()
    if running is not None:
        ledger.pipelines.add(running.id, [pipeline])
        return RequestedScrape(running, pipeline)
    params = {FULL: True} if full else {}
    now = service.clock().isoformat()  # a request of its own: what was refused before says nothing about it
    report = ledger.enqueue([WorkRequest(SCRAPE, key, now, REQUESTED, params=params, pipelines=(pipeline,))])
    ledger.hurry([row for row in report.updated if row.dispatch_id is None and not row.not_before_fixed])
    [row] = [*report.created, *report.updated, *report.absorbed]
    return RequestedScrape(row, pipeline)

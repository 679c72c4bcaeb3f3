"""References over HTTP: sync a source, list what was handed over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from threading import BoundedSemaphore
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from domain.shared.error import TransientResourceError
from orchestration.api.answers import Accepted
from orchestration.api.pipelines import ULID
from orchestration.domains.references import open_references
from orchestration.settings import Settings
from services.references.listing import LARGEST_PAGE, list_handoffs
from services.references.requests import request_scrape
from services.references.service import ReferencesService
from services.references.sync import sync

SCRAPE = "01M7WRPGPY805SWQ78BEHEER0R"
AT_ONCE = 4
"""Syncs that go on inside requests: slow sources must not have all threads."""
RETRY_AFTER = timedelta(seconds=10)
Status = Literal["queued", "running", "completed", "failed"]
Source = Annotated[
    str,
    Path(
        # No database has a NUL in a text.
        pattern=r"^[^\x00-\x1f\x7f]+$",
        max_length=200,
        description="A source, as the sources file names it.",
        examples=["atlas"],
    ),
]
EXAMPLE_SYNC: dict[str, Any] = {
    "scrape_run_id": SCRAPE,
    "pipeline_id": SCRAPE,
    "source": "atlas",
    "stored": 2,
    "changed": 1,
    "unchanged": 1497,
    "handoff_queued_count": 0,
    "handoff_completed_count": 3,
    "handoff_failed_count": 0,
    "handoff_skipped_count": 1497,
    "handoff_available": True,
    "notes": [],
}
EXAMPLE_HANDOFF: dict[str, Any] = {
    "id": 7,
    "reference_id": "atlas:17",
    "payload_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "source": "atlas",
    "status": "completed",
    "reason_code": "ingestion_job_queued",
    "attempts": 1,
    "work_id": 41,
    "error": None,
    "scrape_run_id": SCRAPE,
    "created_at": "2026-11-17T11:00:00Z",
    "updated_at": "2026-11-17T11:00:01Z",
    "finished_at": "2026-11-17T11:00:01Z",
    "scrape_run_ids": [SCRAPE],
}


class Synced(BaseModel):
    """What a sync did. Of the references it touched, the four counts of hand-offs are the sum."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_SYNC]})
    scrape_run_id: str = Field(description="Names this scrape in the list of hand-offs.")
    pipeline_id: str = Field(description="The same, as the chain of work that follows: GET /pipelines/{id}.")
    source: str
    stored: int = Field(description="References that are new.")
    changed: int = Field(description="References with other content than before.")
    unchanged: int
    handoff_queued_count: int = Field(description="Accepted; they wait for another attempt.")
    handoff_completed_count: int = Field(description="Their ingestion job was queued by this call.")
    handoff_failed_count: int
    handoff_skipped_count: int = Field(description="This content was active or ready already.")
    handoff_available: bool = Field(description="False while the tables of hand-offs are taken away.")
    notes: list[str] = Field(description="What a curator should know of the source.")


class HandoffRow(BaseModel):
    """One content of one reference, handed over to ingestion once."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_HANDOFF]})
    id: int
    reference_id: str
    payload_hash: str
    source: str
    status: Status = Field(description="completed: an ingestion job of this content exists.")
    reason_code: str = Field(description="Why it is in this status.")
    attempts: int
    work_id: int | None = Field(description="The work item of its last attempt: GET /work/{id}.")
    error: str | None
    scrape_run_id: str = Field(description="The scrape that queued it last.")
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    scrape_run_ids: list[str] = Field(description="Every scrape that met this content.")


class Handoffs(BaseModel):
    """Hand-offs in the order of their ids."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"total": 1, "items": [EXAMPLE_HANDOFF]}]})
    total: int = Field(description="Hand-offs that match, on this page or not.")
    items: list[HandoffRow]


@contextmanager
def opened(settings: Settings, *, write: bool = False) -> Iterator[ReferencesService]:
    references = open_references(settings, write=write)
    with closing(references.ledger):
        yield references


@contextmanager
def _taken(slots: BoundedSemaphore) -> Iterator[None]:
    """Take one of the slots; raises if there is none."""
    if not slots.acquire(blocking=False):
        raise TransientResourceError(
            f"{AT_ONCE} syncs go on already",
            reason_code="too_many_syncs",
            remedy="wait as long as Retry-After says, or send wait=false",
            retry_after=RETRY_AFTER,
        )
    try:
        yield
    finally:
        slots.release()


def routes(settings: Settings) -> APIRouter:
    router, slots = APIRouter(tags=["references"]), BoundedSemaphore(AT_ONCE)

    @router.post(
        "/scraping/{source}/sync",
        status_code=202,
        summary="Sync a source",
        responses={202: {"content": {"application/json": {"example": EXAMPLE_SYNC}}}},
    )
    def sync_source(
        source: Source,
        response: Response,
        full: Annotated[
            bool, Query(description="Read the source whole, though it says that nothing changed.")
        ] = False,
        wait: Annotated[
            bool, Query(description="False: answer at once with the ids of the scrape that a run is to do.")
        ] = True,
    ) -> Synced | Accepted:
        """Scrapes the source, stores what changed and hands each new content to ingestion, which runs later.

        An unchanged source costs one request. 404 if there is no such source; 503 if it does not answer, or
        with `Retry-After` while as many syncs go on as may at once. `wait=false` requests the scrape of the
        next run instead, once however often it is asked for while it waits or runs.
        """
        with opened(settings, write=True) as references:
            if not wait:
                found = request_scrape(references, source, full=full)
                response.headers["Location"] = f"/pipelines/{found.pipeline_id}"
                return Accepted(job_id=found.work.id, pipeline_id=found.pipeline_id)
            references.require(source)
            with _taken(slots):
                outcome = sync(references, source, by="api", full=full)
        return Synced(**outcome.as_json(), pipeline_id=outcome.scrape_run_id)

    @router.get("/scraping/{source}/handoffs", summary="List the hand-offs of a source")
    def find_handoffs(
        source: Source,
        status: Annotated[Status | None, Query(description="Those with this status.")] = None,
        scrape_run_id: Annotated[
            str | None, Query(pattern=ULID, description="Those that this scrape met.", examples=[SCRAPE])
        ] = None,
        limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="Hand-offs of the page.")] = 100,
        offset: Annotated[int, Query(ge=0, lt=2**63, description="Hand-offs before the page.")] = 0,
    ) -> Handoffs:
        """The order is stable: by id. 503 while the tables of hand-offs are taken away."""
        with opened(settings) as references:
            page = list_handoffs(
                references, source, status=status, scrape_run_id=scrape_run_id, limit=limit, offset=offset
            )
        return Handoffs.model_validate(page.as_json())

    return router

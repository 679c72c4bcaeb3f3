"""Work items: list them, see one with its history, queue one again, give one up."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from domain.shared.error import InvalidInput
from domain.shared.work import Work
from orchestration.api.answers import Accepted
from orchestration.api.readers import Readers
from orchestration.services import open_ledger
from orchestration.settings import Settings
from resources.ledger.client import Ledger

WorkId = Annotated[
    int, Path(ge=1, description="The id of a work item: the job id of another answer.", examples=[41])
]
Status = Literal["queued", "deferred", "running", "completed", "failed", "skipped", "cancelled", "superseded"]
EXAMPLE: dict[str, Any] = {
    "id": 41,
    "kind": "orders.fill",
    "key": "daily_orders:2026-11-17",
    "status": "deferred",
    "reason_code": "source_down",
    "fingerprint": "missing",
    "params": {},
    "tenant": "default",
    "priority": 0,
    "once": False,
    "parent_id": None,
    "max_attempts": None,
    "not_before": "2026-11-17T11:02:00Z",
    "created_at": "2026-11-17T11:00:00Z",
    "updated_at": "2026-11-17T11:01:00Z",
    "error_kind": "transient",
    "error": "the source did not answer",
    "attempts": 1,
    "crash_count": 0,
    "dispatches": 1,
    "dispatch_id": None,
    "recurrence": 0,
    "run_id": None,
    "lease_until": None,
    "fence": 1,
    "started_at": "2026-11-17T11:00:30Z",
    "finished_at": None,
    "deaths": 0,
    "not_before_fixed": False,
}
EXAMPLE_EVENT: dict[str, Any] = {
    "id": 90,
    "work_id": 41,
    "at": "2026-11-17T11:00:00Z",
    "event": "created",
    "status": "queued",
    "attempt": 0,
    "run_id": None,
    "reason_code": "missing",
    "error_kind": None,
    "error": None,
}


def _example(**more: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [{**EXAMPLE, **more}]})


class WorkItem(BaseModel):
    """One row of the work ledger: what to do, how often it was tried, when it may be tried again."""

    model_config = _example()
    id: int = Field(description="The job id; unique for ever.")
    kind: str = Field(description="The kind of work, with its domain: `orders.fill`.")
    key: str = Field(description="What it is done for: `table:partition`.")
    status: Status
    reason_code: str = Field(description="Why it is in this status.")
    fingerprint: str = Field(description="What the request stands for: the same one adds nothing.")
    params: dict[str, Any]
    tenant: str
    priority: int
    once: bool
    parent_id: int | None = Field(description="The work item that caused it.")
    max_attempts: int | None
    not_before: datetime = Field(description="It is not tried before this moment.")
    created_at: datetime
    updated_at: datetime
    error_kind: str | None
    error: str | None
    attempts: int
    crash_count: int = Field(description="Attempts that ended with an error nobody foresaw.")
    dispatches: int
    dispatch_id: str | None
    recurrence: int
    run_id: str | None = Field(description="The Dagster run, or the worker, that has or had it.")
    lease_until: datetime | None
    fence: int
    started_at: datetime | None
    finished_at: datetime | None
    deaths: int = Field(description="Workers in a row that died with it.")
    not_before_fixed: bool


class WorkEvent(BaseModel):
    """One transition of a work item."""

    id: int
    work_id: int
    at: datetime
    event: str
    status: Status
    attempt: int
    run_id: str | None
    reason_code: str
    error_kind: str | None
    error: str | None


class WorkStory(WorkItem):
    """A work item with its history, and the pipelines it belongs to."""

    model_config = _example(events=[EXAMPLE_EVENT], pipeline_ids=["01JD4Q3ZK8T5V9W0X1Y2Z3A4B5"])
    events: list[WorkEvent] = Field(description="Oldest first.")
    pipeline_ids: list[str]


class WorkPage(BaseModel):
    """Work items, newest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [EXAMPLE], "next_cursor": 41}]})
    items: list[WorkItem]
    next_cursor: int | None = Field(description="`cursor` of the next page; null on the last one.")


class Queued(WorkItem, Accepted):
    """The work item that is queued now: of finished work a new one, with an id of its own."""

    model_config = _example(status="queued", job_id=41, pipeline_id=None)


def routes(settings: Settings) -> APIRouter:
    router, readers = APIRouter(tags=["work"]), Readers(settings)

    @router.get("/work", summary="List work items, newest first")
    def find_work(
        kind: Annotated[str | None, Query(description="A kind of work.", examples=["orders.fill"])] = None,
        status: Annotated[
            list[Status] | None, Query(description="May be given several times.", examples=[["failed"]])
        ] = None,
        key: Annotated[
            str | None, Query(description="The key's beginning.", examples=["daily_orders:2026-11"])
        ] = None,
        reason_code: Annotated[
            str | None, Query(description="Why it is in its status.", examples=["source_down"])
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000, description="Items of a page.")] = 50,
        cursor: Annotated[
            int | None, Query(ge=1, lt=2**63, description="`next_cursor` of the page before.", examples=[41])
        ] = None,
    ) -> WorkPage:
        """The order is stable: rows that come meanwhile are on no later page."""
        with readers.taken() as reader:
            rows = reader.ledger.find(kind, key, status, limit + 1, reason_code=reason_code, before=cursor)
        items = [as_item(row) for row in rows[:limit]]
        return WorkPage(items=items, next_cursor=items[-1].id if len(rows) > limit else None)

    @router.get("/work/{id}", summary="A work item with its history")
    @router.get("/sync/jobs/{id}", summary="A job with its history: the same as GET /work/{id}")
    def show_work(id: WorkId) -> WorkStory:  # noqa: A002 - its name in the path
        """Why it is where it is: every attempt, with its reason and its error."""
        with readers.taken() as reader:
            return _story(reader.ledger, id)

    @router.post("/work/{id}/retry", status_code=202, summary="Queue a work item again")
    def retry_work(id: WorkId) -> Queued:  # noqa: A002
        """A waiting one is due now; a finished one becomes a new work item. 409 while one runs."""
        with closing(open_ledger(settings, write=True)) as ledger:
            return _queued(ledger, ledger.retry(id))

    @router.post("/sync/jobs/{id}/recover", status_code=202, summary="Recover a job")
    def recover_job(id: WorkId) -> Queued:  # noqa: A002
        """As retry; it is taken from a dead worker first. 409 while a live worker holds it."""
        with closing(open_ledger(settings, write=True)) as ledger:
            ledger.sweep(finished_runs=())
            return _queued(ledger, ledger.retry(id))

    @router.post("/work/{id}/cancel", summary="Give a work item up")
    def cancel_work(id: WorkId) -> WorkItem:  # noqa: A002
        """It is queued again only when something has changed, or by retry. 409 if it is finished."""
        with closing(open_ledger(settings, write=True)) as ledger:
            return as_item(ledger.cancel(id))

    return router


def _story(ledger: Ledger, work_id: int) -> WorkStory:
    work = ledger.get(work_id)
    if work is None:
        raise InvalidInput(f"there is no work {work_id}", reason_code="unknown_work", remedy="see GET /work")
    events = [WorkEvent(**asdict(event)) for event in ledger.events(work_id)]
    pipelines = ledger.pipelines.of([work_id]).get(work_id, ())
    return WorkStory(**dict(as_item(work)), events=events, pipeline_ids=list(pipelines))


def _queued(ledger: Ledger, work: Work) -> Queued:
    pipelines = ledger.pipelines.of([work.id]).get(work.id, ())
    return Queued(**dict(as_item(work)), job_id=work.id, pipeline_id=max(pipelines, default=None))


def as_item(work: Work) -> WorkItem:
    return WorkItem.model_validate(work, from_attributes=True)

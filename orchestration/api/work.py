"""Work items: see one with its history, queue it again."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel

from domain.shared.error import InvalidInput
from domain.shared.work import Work
from orchestration.services import open_ledger
from orchestration.settings import Settings
from resources.ledger.client import Ledger

WorkId = Annotated[int, Path(ge=1, description="The id of a work item: the job id that a call answered.")]


class WorkItem(BaseModel):
    """One row of the work ledger."""

    id: int
    kind: str
    key: str
    status: str
    reason_code: str
    fingerprint: str
    params: dict[str, Any]
    tenant: str
    priority: int
    once: bool
    parent_id: int | None
    max_attempts: int | None
    not_before: datetime
    created_at: datetime
    updated_at: datetime
    error_kind: str | None
    error: str | None
    attempts: int
    crash_count: int
    dispatches: int
    dispatch_id: str | None
    recurrence: int
    run_id: str | None
    lease_until: datetime | None
    fence: int
    started_at: datetime | None
    finished_at: datetime | None
    deaths: int
    not_before_fixed: bool


class WorkEvent(BaseModel):
    """One transition of a work item."""

    id: int
    work_id: int
    at: datetime
    event: str
    status: str
    attempt: int
    run_id: str | None
    reason_code: str
    error_kind: str | None
    error: str | None


class WorkStory(WorkItem):
    """A work item with its history."""

    events: list[WorkEvent]


def routes(settings: Settings) -> APIRouter:
    router = APIRouter(tags=["work"])

    @router.get("/sync/jobs/{id}", summary="A work item with its history")
    def job(id: WorkId) -> WorkStory:  # noqa: A002 - its name in the path
        with closing(open_ledger(settings)) as ledger:
            return _story(ledger, id)

    @router.post("/sync/jobs/{id}/recover", summary="Queue a work item again")
    def recover(id: WorkId) -> WorkItem:  # noqa: A002
        """Take it from a dead worker first. 409 while a live worker holds it."""
        with closing(open_ledger(settings, write=True)) as ledger:
            ledger.sweep(finished_runs=())
            return as_item(ledger.retry(id))

    return router


def _story(ledger: Ledger, work_id: int) -> WorkStory:
    work = ledger.get(work_id)
    if work is None:
        raise InvalidInput(f"there is no work {work_id}", reason_code="unknown_work", remedy="see GET /work")
    events = [WorkEvent(**asdict(event)) for event in ledger.events(work_id)]
    return WorkStory(**dict(as_item(work)), events=events)


def as_item(work: Work) -> WorkItem:
    return WorkItem(**asdict(work) | {"params": dict(work.params)})

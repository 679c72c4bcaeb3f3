"""Pipelines: what became of an upload, a scrape or a request, with all the work that followed from it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from domain.shared.error import InvalidInput
from domain.shared.pipeline import Status
from orchestration.api.readers import Readers
from orchestration.api.work import EXAMPLE as WORK_EXAMPLE
from orchestration.api.work import WorkItem, as_item
from orchestration.pipelines import PipelineState
from orchestration.registry import require_domain
from orchestration.settings import Settings

ULID = r"^[0-7][0-9A-HJKMNP-TV-Z]{25}$"
EXAMPLE = "01M7WRPGPY805SWQ78BEHEER0R"
PipelineId = Annotated[
    str, Path(pattern=ULID, description="The id that a call answered.", examples=[EXAMPLE])
]
MOST = 1_000
EXAMPLE_PIPELINE: dict[str, Any] = {
    "pipeline_id": EXAMPLE,
    "status": "RUNNING",
    "domains": ["orders"],
    "created_at": "2026-11-17T11:00:00Z",
    "started_at": "2026-11-17T11:00:01Z",
    "finished_at": None,
    "work": {"orders.ingest": {"completed": 1}, "orders.fill": {"deferred": 1}},
    "view": None,
}


class Pipeline(BaseModel):
    """What follows from one upload, scrape or request."""

    pipeline_id: str = Field(examples=[EXAMPLE])
    status: Status = Field(
        description="NOT_STARTED; RUNNING: some of it waits, runs or was put off; SUCCESS; PARTIAL: it began"
        " well, and something of it failed, was called off or is kept back; FAILED. The last three are ends."
    )
    domains: list[str] = Field(examples=[["orders"]])
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    work: dict[str, dict[str, int]] = Field(
        description="By kind of work, how many work items have which status, each key's newest only.",
        examples=[{"orders.ingest": {"completed": 1}, "orders.fill": {"running": 1}}],
    )
    view: dict[str, Any] | None = Field(
        description="What its domain adds, such as the file that was uploaded, and `phases` with the status"
        " of `data`, `emissions` and `aggregation`; after the last the report has its numbers.",
        examples=[{"file": "train.csv", "phases": {"data": "SUCCESS", "emissions": "RUNNING"}}],
    )


class PipelineStory(Pipeline):
    """A pipeline with its work items, oldest first."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{**EXAMPLE_PIPELINE, "members": [WORK_EXAMPLE], "total": 2}]}
    )
    members: list[WorkItem]
    total: int = Field(description="Work items there are, of which `members` is the page that was asked for.")


class PipelinePage(BaseModel):
    """Pipelines, newest first."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"pipelines": [EXAMPLE_PIPELINE], "more_before": EXAMPLE}]}
    )
    pipelines: list[Pipeline]
    more_before: str | None = Field(description="`before` of the next page; null after the last one.")


def routes(settings: Settings) -> APIRouter:
    readers = Readers(settings)
    router = APIRouter(tags=["pipelines"])

    @router.get("/pipelines", summary="The newest pipelines")
    def find(
        domain: Annotated[str | None, Query(description="Those of one domain.", examples=["orders"])] = None,
        status: Annotated[Status | None, Query(description="Those with this status.")] = None,
        before: Annotated[
            str | None, Query(pattern=ULID, description="Those older than this one: `more_before`.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=MOST, description="Pipelines of a page.")] = 50,
    ) -> PipelinePage:
        """Of a status only part of what there is may be searched; `more_before` then goes on from there."""
        if domain is not None:
            require_domain(settings, domain)
        with readers.taken() as reader:
            page = reader.find(domain=domain, status=status, before=before, limit=limit)
        return PipelinePage(
            pipelines=[as_pipeline(one) for one in page.pipelines], more_before=page.more_before
        )

    @router.get("/pipelines/{id}", summary="A pipeline with its work")
    def show(
        id: PipelineId,  # noqa: A002 - its name in the path
        limit: Annotated[int, Query(ge=1, le=MOST, description="Work items of the page.")] = 100,
        offset: Annotated[int, Query(ge=0, le=10**9, description="Work items before the page.")] = 0,
    ) -> PipelineStory:
        with readers.taken() as reader:
            state = reader.states([id]).get(id)
            if state is None:
                raise unknown(id)
            members = reader.work(id, limit, offset)
        return PipelineStory(
            **dict(as_pipeline(state)), members=[as_item(row) for row in members], total=state.total
        )

    return router


def as_pipeline(state: PipelineState) -> Pipeline:
    return Pipeline.model_validate(state, from_attributes=True)


def unknown(pipeline_id: str) -> InvalidInput:
    return InvalidInput(
        f"there is no pipeline {pipeline_id}", reason_code="unknown_pipeline", remedy="see GET /pipelines"
    )

"""Answers that several routers give."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Accepted(BaseModel):
    """What was asked for is queued; both ids work on every other route."""

    job_id: int = Field(description="The work item: GET /work/{id}.", examples=[41])
    pipeline_id: str | None = Field(
        None,
        description="The chain of work that it belongs to, if there is one: GET /pipelines/{id}.",
        examples=["01JD4Q3ZK8T5V9W0X1Y2Z3A4B5"],
    )

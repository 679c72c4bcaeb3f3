"""Whether this process lives, whether it can work, and what is unhealthy."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from typing import Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from domain.shared.error import InfrastructureError, PerennialError
from domain.shared.health import Health
from orchestration.api.recent import Recent
from orchestration.document import as_document
from orchestration.health import Overview
from orchestration.services import open_lake, open_ledger
from orchestration.settings import Settings


class Alive(BaseModel):
    """This process lives."""

    status: Literal["alive"] = Field(default="alive", examples=["alive"])


class Ready(BaseModel):
    """The ledger and the lake can be reached, and the ledger's schema is this program's."""

    status: Literal["ready"] = Field(default="ready", examples=["ready"])


class FindingView(BaseModel):
    """One unhealthy thing, and what can be done."""

    domain: str
    subject: str
    health: Health
    reason_code: str
    reason: str
    since: datetime | None
    next_attempt: datetime | None
    action: str = Field(description="What a person can do.")
    work_id: int | None
    attempts: int | None
    caused_by: str | None = Field(description="The subject of the finding that causes this one.")
    run_id: str | None = Field(description="The run that does its work now.")


class Status(BaseModel):
    """What is unhealthy, the worst first, as `perennial status --json` says it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "started": True,
                    "healthy": True,
                    "needs_a_person": False,
                    "daemon_runs": True,
                    "summary": "healthy",
                    "checked_at": "2026-11-20T08:00:00+00:00",
                    "groups": [],
                    "findings": [],
                }
            ]
        }
    )
    started: bool = Field(description="False before the first start.")
    healthy: bool
    needs_a_person: bool
    daemon_runs: bool
    summary: str
    checked_at: datetime
    groups: list[dict[str, Any]] = Field(
        description="The findings with the same reason as one, with effects."
    )
    findings: list[FindingView]


def routes(settings: Settings, seen: Recent[Overview]) -> APIRouter:
    router = APIRouter(tags=["health"])
    rendered: tuple[Overview | None, str] = (None, "")

    @router.get("/healthz", summary="Whether this process lives")
    async def healthz() -> Alive:
        """Needs no token, asks nobody."""
        return Alive()

    @router.get("/readyz", summary="Whether it can work")
    def readyz() -> Ready:
        """Needs no token. 503 with the reason code if the ledger or the lake cannot be used."""
        try:
            with closing(open_ledger(settings)) as ledger:
                ledger.running()
            lake = open_lake(settings)
            lake.marks(lake.tables)
        except PerennialError as error:  # its message has addresses, which are nobody's business
            raise InfrastructureError(
                "not ready", reason_code=error.reason_code, remedy="see `perennial doctor`"
            ) from error
        return Ready()

    @router.get("/status", summary="What is unhealthy, and why", response_model=Status)
    def status() -> Response:
        """Every finding with reason, since when, the next attempt, and what a person can do.

        The answer may be a second old, or as old as four looks at everything take.
        """
        nonlocal rendered
        if (found := seen.get()) is not rendered[0]:
            rendered = found, as_document(found.as_json())
        return Response(rendered[1], media_type="application/json")

    return router

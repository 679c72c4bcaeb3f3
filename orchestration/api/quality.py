"""The sources of every domain: when each last answered and last failed, and what that means."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from domain.shared.freshness import FreshnessStatus
from orchestration.registry import enabled
from orchestration.settings import Settings


class Source(BaseModel):
    """One source."""

    domain: str
    source: str
    status: FreshnessStatus = Field(
        description="never_ingested: it never answered nor failed. error: the last attempt failed, or it is "
        "silent for too long. healthy: it answered lately. stale: it did not."
    )
    reason: str = Field(description="Empty if it is healthy.")
    last_success: datetime | None
    last_failure: datetime | None
    last_error: str | None = Field(description="Of the last failure; it stays after later successes.")
    rows_today: int | None = Field(description="Of the last success, if it had rows of today.")
    rows_latest: int | None = Field(description="Of the last success.")


class Quality(BaseModel):
    """All sources of the domains that are on."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "healthy": True,
                "sources": [
                    {
                        "domain": "prices",
                        "source": "prices.daily",
                        "status": "healthy",
                        "reason": "",
                        "last_success": "2026-11-18T10:31:00Z",
                        "last_failure": None,
                        "last_error": None,
                        "rows_today": 5301,
                        "rows_latest": 5301,
                    }
                ],
            }
        }
    )

    healthy: bool = Field(description="Whether every source is.")
    sources: list[Source]


def routes(settings: Settings) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/quality/status", summary="Freshness of every source")
    def status() -> Quality:
        found: list[Source] = []
        for domain in enabled(settings):
            service = domain.open(settings)
            with closing(service.ledger):
                found += [
                    Source.model_validate(asdict(source) | asdict(state) | {"domain": domain.name})
                    for source, state in domain.sources(service)
                ]
        return Quality(healthy=all(one.status == "healthy" for one in found), sources=found)

    return router

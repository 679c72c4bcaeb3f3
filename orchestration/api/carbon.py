"""The HTTP routes of the carbon domain: uploads, pulls and recalculation write; reports and states read."""

from __future__ import annotations

from fastapi import APIRouter

from orchestration.api import (
    carbon_catalogue,
    carbon_recalculation,
    carbon_reports,
    carbon_sync,
    carbon_uploads,
)
from orchestration.settings import Settings


def routes(settings: Settings) -> APIRouter:
    router = APIRouter(tags=["carbon"])
    parts = carbon_catalogue, carbon_uploads, carbon_sync, carbon_recalculation, carbon_reports
    for part in parts:
        router.include_router(part.routes(settings))
    return router

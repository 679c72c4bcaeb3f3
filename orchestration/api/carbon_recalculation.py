"""Recalculation over HTTP: request it, see what is due, and how far each module is."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from domain.carbon.catalogue import catalogue
from domain.carbon.recalculation import ModuleStatus
from orchestration.api.carbon_models import Requested, requested
from orchestration.api.carbon_service import TYPES, PathYear, QueryYear, opened
from orchestration.settings import Settings
from services.carbon.recalculation import find_stale_factors, recalculation_status
from services.carbon.requests import ALL, request_recalculation

_NAMES = [ALL, *(module.name for module in catalogue().modules), *TYPES]


class Part(BaseModel):
    """Something that is not current, why, and the work item that corrects it."""

    table: str
    year: int
    module: str | None
    data_entry_type: str | None
    state: str = Field(description="Of its verdict, for example `stale` or `waiting`.")
    reason_code: str
    reason: str
    calculated_at: datetime | None
    job_id: int | None
    job_status: str | None


_PART: JsonDict = {
    "table": "data_entry_emissions",
    "year": 2025,
    "module": "travel",
    "data_entry_type": "train",
    "state": "stale",
    "reason_code": "inputs_changed",
    "reason": "input factors changed since this partition was made",
    "calculated_at": "2026-11-18T12:00:00Z",
    "job_id": 9,
    "job_status": "queued",
}


class StaleFactors(BaseModel):
    """What is calculated with factors that changed since."""

    model_config = ConfigDict(json_schema_extra={"example": {"types": [_PART], "years": []}})

    types: list[Part] = Field(description="Types that were calculated with other factors than there are now.")
    years: list[Part] = Field(
        description="Years whose newest factors are not imported yet: which types they change is not known."
    )


class Module(BaseModel):
    """How current the numbers of a module are."""

    year: int
    module: str
    title: str
    status: ModuleStatus = Field(
        description="recalculating: a part is queued or running. failed: a person decides. due: calculated "
        "next. waiting: put off. locked: outdated, and the year is locked. current: up to date."
    )
    recalculating: bool
    calculated_at: datetime | None = Field(description="When its sums last changed.")
    parts: list[Part] = Field(description="Those that are not current.")


class Modules(BaseModel):
    """How current the numbers are, the newest year first."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "modules": [
                    {
                        "year": 2025,
                        "module": "travel",
                        "title": "Business travel",
                        "status": "recalculating",
                        "recalculating": True,
                        "calculated_at": "2026-11-18T12:00:00Z",
                        "parts": [_PART],
                    }
                ]
            }
        }
    )

    modules: list[Module]


def routes(settings: Settings) -> APIRouter:
    router = APIRouter()

    @router.post(
        "/sync/recalculate-emissions/{year}/{type}",
        summary="Calculate a type, a module or all anew",
        status_code=202,
        responses={
            404: {"description": "The type has no entries in this year."},
            409: {"description": "The year is locked."},
        },
    )
    def recalculate(
        response: Response,
        year: PathYear,
        name: Annotated[
            str,
            Path(
                alias="type",
                description="A data entry type, a module with all its types, or `all`.",
                json_schema_extra={"enum": _NAMES},
                examples=["train"],
            ),
        ],
    ) -> Requested:
        """Whether it is due or not. What comes out the same changes nothing.

        What waits or runs already is not requested twice: the answer names its job and pipeline.
        """
        with opened(settings, write=True) as carbon:
            found = request_recalculation(carbon, year, [name])
        return requested(response, found)

    @router.get("/factors/stale", summary="What is calculated with factors that changed")
    def stale() -> StaleFactors:
        """It is calculated anew by itself, unless its year is locked or its work failed: `state` and
        `job_status` say so."""
        with opened(settings) as carbon:
            return StaleFactors.model_validate(asdict(find_stale_factors(carbon)))

    @router.get("/recalculation-status", summary="How current the numbers of each module are")
    def status(
        year: Annotated[QueryYear, Query(description="Only this year.")] = None,
    ) -> Modules:
        with opened(settings) as carbon:
            found = [one for one in recalculation_status(carbon) if year in (None, one.year)]
        return Modules(
            modules=[
                Module.model_validate(asdict(one) | {"recalculating": one.status == "recalculating"})
                for one in found
            ]
        )

    return router

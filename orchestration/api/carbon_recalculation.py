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
from services.carbon.explain import stale_factors
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


class Factor(BaseModel):
    """A factor that the newest file of its type lacks. It is still used."""

    year: int
    data_entry_type: str
    emission_type: str
    classification: str = Field(description="What it is for: JSON.")
    value: float
    unit: str
    entries: int = Field(description="How many are calculated with it.")
    tonnes: float = Field(description="What they cause.")
    file: str | None = Field(description="The file that has its value.")
    line: int | None
    uploaded_at: datetime | None
    uploaded_by: str | None


_FACTOR: JsonDict = {
    "year": 2025,
    "data_entry_type": "train",
    "emission_type": "train",
    "classification": '{"country":"CH"}',
    "value": 0.008,
    "unit": "kg/km",
    "entries": 12,
    "tonnes": 0.016,
    "file": "factors-2025.csv",
    "line": 2,
    "uploaded_at": "2026-11-18T12:00:00Z",
    "uploaded_by": "api: anna",
}


class StaleFactors(BaseModel):
    """What is calculated with factors that changed since, and the factors that the newest files lack."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"types": [_PART], "years": [], "factors": [_FACTOR]}}
    )

    types: list[Part] = Field(description="Types that were calculated with other factors than there are now.")
    years: list[Part] = Field(
        description="Years whose newest factors are not imported yet: which types they change is not known."
    )
    factors: list[Factor] = Field(description="Factors that the newest file of their type lacks.")


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

    @router.get("/factors/stale", summary="What is calculated with factors that changed, or are in no file")
    def stale(year: Annotated[QueryYear, Query(description="Only this year.")] = None) -> StaleFactors:
        """What changed is calculated anew by itself, unless its year is locked or its work failed: `state`
        and `job_status` say so."""
        with opened(settings) as carbon:
            found = asdict(find_stale_factors(carbon)) | {"factors": stale_factors(carbon, year)}
        return StaleFactors.model_validate(
            {name: [one for one in rows if year in (None, one["year"])] for name, rows in found.items()}
        )

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

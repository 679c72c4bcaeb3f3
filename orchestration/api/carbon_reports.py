"""Reports over HTTP: as JSON, as CSV, or as the page that is sent on."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from domain.carbon.tables import REPORTS
from domain.shared.error import InvalidInput
from orchestration.api.carbon_service import Name, PathYear, opened
from orchestration.dates import parse_past
from orchestration.settings import Settings
from services.carbon.report import report_of
from services.carbon.report_page import report_page

Format = Literal["json", "csv", "html"]
_MEDIA: dict[str, Format] = {"application/json": "json", "text/csv": "csv", "text/html": "html"}
_PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""As the page says of itself: it has no script, and loads nothing."""


class ReportRow(BaseModel):
    """The sum of a module and scope."""

    module: str
    scope: int
    mg: int = Field(description="Milligrams of CO2e, exact.")
    results: int
    unmatched: int = Field(description="Results that no factor fits: they have no mass.")


class Report(BaseModel):
    """The report of a year, of all units or of one with all below it."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "year": 2025,
                "unit": None,
                "total_mg": 31_000_000,
                "total_tonnes": 0.031,
                "rows": [{"module": "travel", "scope": 3, "mg": 31_000_000, "results": 2, "unmatched": 0}],
                "fallbacks": [],
                "notes": [],
            }
        }
    )

    year: int
    unit: str | None
    total_mg: int
    total_tonnes: float
    rows: list[ReportRow]
    fallbacks: list[dict[str, Any]] = Field(description="What is counted with fallback factors.")
    notes: list[str] = Field(description="What a reader must know: what is old, waits or was left out.")


class ReportYear(BaseModel):
    """A year that has a report."""

    year: int = Field(examples=[2025])
    locked: str | None = Field(description="The reason of its lock: nothing may change it.")


class ReportYears(BaseModel):
    """The years that have a report."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"reports": [{"year": 2024, "locked": "published in May"}]}}
    )

    reports: list[ReportYear]


_CSV = """\
name,year,unit_id,module,scope,own_mg,total_mg,own_results,total_results,own_unmatched,total_unmatched,\
own_tonnes,total_tonnes
Physics,2025,PHY,travel,3,16000000,16000000,1,1,0,0,0.016000000,0.016000000
"""


def routes(settings: Settings) -> APIRouter:
    router = APIRouter()

    @router.get("/carbon/reports", summary="The years that have a report")
    def years() -> ReportYears:
        with opened(settings) as carbon:
            locks = {year: lock.reason for year, lock in carbon.store.year_locks.held().items()}
            found = sorted(int(partition) for partition in carbon.lake.partitions(REPORTS.name))
        return ReportYears(reports=[ReportYear(year=year, locked=locks.get(year)) for year in found])

    @router.get(
        "/carbon/reports/{year}",
        summary="The report of a year",
        response_model=Report,
        responses={
            200: {
                "description": "The report. `Notes` in the header of CSV: what a reader must know, as JSON.",
                "content": {
                    "text/csv": {"schema": {"type": "string"}, "example": _CSV},
                    "text/html": {"schema": {"type": "string"}, "example": "<!DOCTYPE html>…"},
                },
            },
            404: {"description": "There is no report of this year, or was none yet at that moment."},
            406: {"description": "There is no report in a format that `Accept` names."},
        },
    )
    def report(
        year: PathYear,
        unit: Annotated[Name, Query(description="This unit with all below it.", examples=["PHY"])] = None,
        as_of: Annotated[
            str | None,
            Query(max_length=40, description="As it was then.", examples=["2026-11-18", "2026-11-18T14:30"]),
        ] = None,
        format: Annotated[  # noqa: A002 - its name in the query
            Format | None, Query(description="Instead of the header `Accept`.")
        ] = None,
        accept: Annotated[str, Header(include_in_schema=False)] = "*/*",
    ) -> Any:
        """JSON has the sums by module and scope, CSV every unit, module and scope; HTML is one page for
        people that needs no other file. Which one, `format` says, or else `Accept`."""
        wanted = format or accepted_format(accept)
        at = parse_past(as_of)
        with opened(settings) as carbon:
            if wanted == "html":
                page = report_page(carbon, year, unit, at)
                headers = {"Content-Security-Policy": _PAGE_POLICY}
                return Response(page, headers=headers, media_type="text/html")
            found = report_of(carbon, year, unit, at)
        if wanted == "csv":
            return Response(
                found.as_csv(),
                headers={
                    "Notes": json.dumps([*found.gaps, *found.notes][:20]),
                    "Content-Disposition": f'attachment; filename="report-{year}.csv"',
                },
                media_type="text/csv",
            )
        return Report(**found.as_json())

    return router


def accepted_format(accept: str) -> Format:
    """Return the format that a header prefers; JSON if it takes any."""
    found: dict[Format, float] = {}
    for part in accept.split(",")[:50]:
        media, _, rest = part.strip().lower().partition(";")
        for known, name in _MEDIA.items():
            if media.strip() in (known, f"{known.partition('/')[0]}/*", "*/*", ""):
                found[name] = max(found.get(name, 0.0), _quality(rest))
    best = max(_MEDIA.values(), key=lambda name: found.get(name, 0.0))
    if not found.get(best):
        raise InvalidInput(
            "there is no report in a format that Accept names",
            reason_code="not_acceptable",
            remedy=f"Accept: {', '.join(_MEDIA)}; or format=json, csv or html",
        )
    return best


def _quality(parameters: str) -> float:
    for one in parameters.split(";"):
        name, _, value = one.strip().partition("=")
        if name == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0

"""The sync routes over HTTP: entries, factors and units come in, and what follows from them is done."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from orchestration.api.carbon_files import WRITE, Content, QueryType, SaidOf, taken, takes_file
from orchestration.api.carbon_service import TYPES
from orchestration.settings import Settings


def routes(settings: Settings) -> APIRouter:
    router = APIRouter()

    @router.post("/sync/dispatch", summary="Upload data entries", openapi_extra=takes_file("data"), **WRITE)
    def dispatch(
        response: Response, content: Content, said: SaidOf, data_entry_type: QueryType = None
    ) -> Any:
        """The body is a file of data entries of one type. They are imported, calculated and reported.

        It takes the place of the file before of its type, year and institution. The same file again is known.
        """
        return taken(settings, response, said.file("data", content, data_entry_type), said)

    @router.post(
        "/sync/factors/{type}",
        summary="Upload emission factors of a type",
        openapi_extra=takes_file("factors"),
        **WRITE,
    )
    def factors(
        response: Response,
        content: Content,
        said: SaidOf,
        name: Annotated[
            str,
            Path(
                alias="type",
                description="The data entry type of all its rows.",
                json_schema_extra={"enum": TYPES},
                examples=["train"],
            ),
        ],
    ) -> Any:
        """The body is a file of factors. Exactly what they change is calculated anew, with the same pipeline.

        Factors of the type that the file lacks are marked as stale, and still used.
        """
        return taken(settings, response, said.file("factors", content, name), said)

    @router.post(
        "/sync/units", summary="Upload organisational units", openapi_extra=takes_file("units"), **WRITE
    )
    def units(response: Response, content: Content, said: SaidOf) -> Any:
        """The body is a file of units. It takes the place of the file before of its year and institution."""
        return taken(settings, response, said.file("units", content, None), said)

    return router

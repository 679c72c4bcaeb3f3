"""The sync routes over HTTP: entries, factors and units come in, and what follows from them is done."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from orchestration.api.carbon_files import (
    WRITE,
    WRITE_OR_PULL,
    Content,
    QueryType,
    SaidOf,
    pulled,
    taken,
    takes_file,
)
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
        return taken(settings, response, said, "data", content, data_entry_type)

    @router.post(
        "/sync/factors/{type}",
        summary="Upload emission factors of a type, or pull them",
        openapi_extra=takes_file("factors", required=False),
        **WRITE_OR_PULL,
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

        Factors of the type that the file lacks are marked as stale, and still used. Without a body they are
        read of the applications that are set: of `year`, or of all years that these listed last.
        """
        if content is None:
            return pulled(settings, response, said, "factors", name)
        return taken(settings, response, said, "factors", content, name)

    @router.post(
        "/sync/units",
        summary="Upload organisational units, or pull them",
        openapi_extra=takes_file("units", required=False),
        **WRITE_OR_PULL,
    )
    def units(response: Response, content: Content, said: SaidOf) -> Any:
        """The body is a file of units. It takes the place of the file before of its year and institution.

        Without a body they are read of the applications that are set: of `year`, or of all years that these
        listed last.
        """
        if content is None:
            return pulled(settings, response, said, "units")
        return taken(settings, response, said, "units", content, None)

    return router

"""Files over HTTP: the file is the body of a call, and what its caller says about it stands in the query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError

from domain.carbon.feeds import FeedKind
from domain.shared.error import InvalidInput
from domain.shared.names import fault_of_name
from orchestration.api.carbon_models import ACCEPTED, AcceptedFile, Foreseen, Requested, accepted, requested
from orchestration.api.carbon_service import Name, QueryYear, opened
from orchestration.api.limits import body_limit
from orchestration.api.parameters import parameter_error
from orchestration.settings import Settings
from services.carbon.pulls import request_pull
from services.carbon.upload import upload
from services.carbon.uploaded_file import LARGEST, File, FileKind
from services.carbon.what_if import what_if

_FILE_TYPES = ("text/csv", "application/vnd.apache.parquet", "application/octet-stream")
_OF_FILE = ("name", "institution", "by", "decimal", "accept_valid")
_NO_FILE = ("multipart/", "application/json")
EXAMPLES = {
    "units": "unit_id,name,parent_id\nUNI,University,\nPHY,Physics,UNI\n",
    "factors": "data_entry_type,country,value,unit,source\ntrain,CH,8,g/km,mobitool 3\n",
    "data": "unit_id,distance,passengers,country\nPHY,1000,2,CH\n",
}
WRITE: dict[str, Any] = {
    "status_code": 202,
    "response_model": AcceptedFile,
    "responses": {
        200: {"model": Foreseen, "description": "With `what_if`: what it would change."},
        409: {
            "description": "Its year is locked, or it has less than half of the rows that it replaces; or "
            "there is neither a file nor an application."
        },
        415: {"description": "The body is a form or JSON: send the file itself."},
        422: {"description": "The file is refused, `problems` names its lines; or a parameter is wrong."},
    },
}
"""What the routes that take a file have in common."""
WRITE_OR_PULL = WRITE | {
    "response_model": AcceptedFile | Requested,
    "responses": WRITE["responses"] | {202: {"content": {"application/json": {"example": ACCEPTED}}}},
}
"""The same of routes that read an application where no file is given."""


@dataclass(frozen=True)
class Said:
    """What a caller says about a file."""

    year: int | None
    name: str
    institution: str
    by: str
    mark: Literal["point", "comma"] | None
    accept_valid: bool
    may_shrink: bool
    what_if: bool
    of_file: tuple[str, ...] = ()
    """The parameters that were given, and mean nothing without a file."""

    def file(self, kind: FileKind, content: bytes, data_entry_type: str | None) -> File:
        return File(
            kind=kind,
            name=self.name or f"{data_entry_type or kind}.csv",
            content=content,
            by=self.by,
            institution=self.institution,
            year=self.year,
            data_entry_type=data_entry_type,
            mark=self.mark,
        )


def said(
    request: Request,
    *,
    year: Annotated[QueryYear, Query(description="The year, if the file does not name it.")] = None,
    name: Annotated[Name, Query(description="The name of the file, for people.")] = None,
    institution: Annotated[Name, Query(description="Whose units or data these are.")] = "main",
    by: Annotated[Name, Query(description="Who uploads it; noted as `api: NAME`, and not verified.")] = None,
    decimal: Annotated[
        Literal["point", "comma"] | None, Query(description="If the numbers leave doubt.")
    ] = None,
    accept_valid: Annotated[
        bool, Query(description="Import the good rows of a file that has others; else it is refused whole.")
    ] = False,
    replace: Annotated[
        bool, Query(description="Replace a file even by one with less than half of its rows.")
    ] = False,
    what_if: Annotated[  # noqa: A002, RUF100
        bool, Query(description="Answer 200 with what the file would change, and change nothing.")
    ] = False,
) -> Said:
    if by and (fault := fault_of_name(by)):
        raise InvalidInput(f"by is {fault}", reason_code="bad_name", remedy="by=anna")
    who = f"api: {by}" if by else "api"
    of_file = tuple(one for one in _OF_FILE if one in request.query_params)
    return Said(
        year, name or "", institution or "main", who, decimal, accept_valid, replace, what_if, of_file
    )


async def content(request: Request) -> bytes | None:
    """The body; None if it is empty: programs send a type and no body, and no file is empty.

    A form would be read as a file with strange lines: it is refused by its type.
    """
    given, body = request.headers.get("content-type", "").lower(), await request.body()
    if body and given.startswith(_NO_FILE):
        raise InvalidInput(
            f"the body is {given.partition(';')[0]!r}, not a file",
            reason_code="no_file",
            remedy="send the CSV or Parquet file itself as the body: curl --data-binary @FILE",
        )
    return body or None


Content = Annotated[bytes | None, Depends(content)]
SaidOf = Annotated[Said, Depends(said)]
QueryType = Annotated[
    str | None,
    Query(alias="type", description="The data entry type, if the file does not name it.", examples=["train"]),
]


def takes_file(kind: FileKind, *, required: bool = True) -> dict[str, Any]:
    """Return `openapi_extra` of a route whose body is a file."""
    media = {
        name: {"schema": {"type": "string", "format": "binary"}}
        | ({"example": EXAMPLES[kind]} if not i else {})
        for i, name in enumerate(_FILE_TYPES)
    }
    body = {"description": f"A CSV or Parquet file of {kind}.", "required": required, "content": media}
    return body_limit(LARGEST) | {"requestBody": body}


def taken(
    settings: Settings,
    response: Response,
    said: Said,
    kind: FileKind,
    content: bytes | None,
    data_entry_type: str | None,
) -> AcceptedFile | Response:
    """Upload the file; or answer what it would change."""
    file = said.file(kind, content or b"", data_entry_type)
    valid, may_shrink = said.accept_valid, said.may_shrink
    with opened(settings, write=True) as carbon:
        if said.what_if:
            found = what_if(carbon, file, accept_valid=valid, may_shrink=may_shrink).as_json()
            foreseen = Foreseen.model_validate(found).model_dump_json()
            return Response(foreseen, 200, media_type="application/json")
        receipt = upload(carbon, file, accept_valid=valid, may_shrink=may_shrink)
    return accepted(response, receipt)


def pulled(
    settings: Settings, response: Response, said: Said, kind: FeedKind, data_entry_type: str | None = None
) -> Requested:
    """Request that the applications are read."""
    if said.of_file:
        fault = "without a file in the body it means nothing: the applications are read as they are set"
        raise RequestValidationError([parameter_error("query", name, fault) for name in said.of_file])
    with opened(settings, write=True) as carbon:
        if said.what_if or not carbon.feeds:
            raise InvalidInput(
                "there is no file in the body" + ("" if said.what_if else ", and no application is set"),
                reason_code="no_application",
                remedy="send the file as the body; "
                "or set PERENNIAL_CARBON_APP_URL or PERENNIAL_CARBON_API_URL",
            )
        found = request_pull(carbon, kind, said.year, data_entry_type, may_shrink=said.may_shrink)
    return requested(response, found)

"""The HTTP calls of the carbon domain.

POST /carbon/uploads?kind=…   import the file that is the body: 201; 200 if it is known, 422 if refused
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from domain.shared.error import InvalidInput
from domain.shared.names import fault_of_name
from domain.shared.tabular.problems import FileRefused
from orchestration.api.answers import json_response, refusal
from orchestration.domain import Call
from orchestration.domains.carbon import open_carbon
from orchestration.settings import Settings
from services.carbon.replacements import WouldShrink
from services.carbon.store import YearLocked
from services.carbon.upload import upload
from services.carbon.uploaded_file import LARGEST, File

PARAMETERS = ("kind", "type", "year", "name", "institution", "by", "decimal", "accept_valid", "replace")
"""The query parameters of an upload."""


def calls(settings: Settings) -> list[Call]:
    async def receive(request: Request) -> Response:
        valid, may_shrink = (_is_yes(request, name) for name in ("accept_valid", "replace"))
        try:
            file = await _file(request)
            status, receipt = await run_in_threadpool(_upload, settings, file, valid, may_shrink)
        except FileRefused as error:
            problems = [problem.as_json() for problem in error.problems]
            return refusal(error, 422, problems=problems, problem_count=error.total)
        except (YearLocked, WouldShrink) as error:
            return refusal(error, 409)
        return json_response(status, receipt)

    return [Call("POST", "/carbon/uploads", receive)]


def _is_yes(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() in ("1", "true", "yes")


async def _file(request: Request) -> File:
    given = request.query_params
    _known(given.multi_items())
    kind, year, mark = given.get("kind", ""), given.get("year", ""), given.get("decimal")
    if kind not in ("units", "factors", "data"):
        raise InvalidInput(f"kind is {kind!r}", remedy="kind=units, kind=factors or kind=data")
    if year and not (year.isascii() and year.isdigit() and len(year) <= 4):
        raise InvalidInput(f"year is {year[:20]!r}", reason_code="bad_year", remedy="year=2025")
    if mark not in (None, "point", "comma"):
        raise InvalidInput(f"decimal is {mark!r}", remedy="decimal=point or decimal=comma")
    return File(
        kind=kind,  # type: ignore[arg-type]
        name=given.get("name") or f"{kind}.csv",
        content=await _body(request),
        by=_by(given.get("by", "")),
        institution=given.get("institution") or "main",
        year=int(year) if year else None,
        data_entry_type=given.get("type"),
        mark=mark,  # type: ignore[arg-type]
    )


def _known(given: Iterable[tuple[str, str]]) -> None:
    """Refuse misspelt parameters: `instituion=other` would replace the data of `main` without an error."""
    names = [name for name, _ in given]
    for name in names:
        if name not in PARAMETERS or names.count(name) > 1:
            fault = "is given more than once" if name in PARAMETERS else "is not a parameter of an upload"
            raise InvalidInput(f"{name[:40]!r} {fault}", remedy=f"one each of {', '.join(PARAMETERS)}")


def _by(name: str) -> str:
    """The name that the caller gave, marked as unverified."""
    if not name:
        return "api"
    if fault := fault_of_name(name):
        raise InvalidInput(f"by is {fault}", reason_code="bad_name", remedy="by=anna")
    return f"api: {name}"


async def _body(request: Request) -> bytes:
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > LARGEST:
            raise InvalidInput(f"the file is larger than {LARGEST >> 20} MiB", remedy="split it by year")
    return bytes(content)


def _upload(settings: Settings, file: File, valid: bool, may_shrink: bool) -> tuple[int, dict[str, Any]]:
    carbon = open_carbon(settings, write=True)
    with closing(carbon.ledger):
        receipt = upload(carbon, file, accept_valid=valid, may_shrink=may_shrink)
    return (200 if receipt.known else 201), receipt.as_json()

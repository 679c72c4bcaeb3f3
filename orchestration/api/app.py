"""The HTTP interface for programs: look at a piece of work, recover it, upload a carbon file.

    GET  /sync/jobs/ID            a piece of work with its history
    POST /sync/jobs/ID/recover    queue it again: 200, or 409 while somebody is at it
    POST /carbon/uploads?kind=…   take in the file that is the body: 201; 200 if it is in, 422 if refused

It only calls what the command calls. Every answer is JSON; an error has `error`, `reason_code` and `remedy`.
Who may call at all is decided in `callers.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from domain.carbon.reading.problems import FileRefused
from domain.shared.error import InvalidInput, PerennialError
from domain.shared.names import fault_of_name
from orchestration.api.callers import admit
from orchestration.services import open_carbon, open_ledger
from orchestration.settings import Settings
from resources.ledger.model import Work
from services.carbon.service import YearLocked
from services.carbon.upload import LARGEST, File, upload

CALLS = "GET /sync/jobs/ID, POST /sync/jobs/ID/recover, POST /carbon/uploads"
Endpoint = Callable[[Request], Awaitable[Response]]
SAID = ("kind", "type", "year", "name", "institution", "by", "decimal", "accept_valid", "as_newest")
"""What a caller may say of a file."""
_STATUS = {
    "unknown_work": 404,
    "already_running": 409,
    "unit_taken": 409,
    "wrong_api_token": 401,
    "foreign_page": 403,
}
"""By reason code, where it is not 400."""


def build_app(settings: Settings) -> Starlette:
    """One application over the settings of this process."""

    def guarded(endpoint: Endpoint) -> Endpoint:
        async def answer(request: Request) -> Response:
            try:
                admit(settings, request.headers)
                return await endpoint(request)
            except PerennialError as error:
                return _refusal(error)

        return answer

    async def job(request: Request) -> Response:
        return _json(200, await run_in_threadpool(_job, settings, request.path_params["id"]))

    async def recover(request: Request) -> Response:
        return _json(200, await run_in_threadpool(_recover, settings, request.path_params["id"]))

    async def take_in(request: Request) -> Response:
        requests = _wants(request, "accept_valid"), _wants(request, "as_newest")
        status, told = await run_in_threadpool(_upload, settings, await _file(request), *requests)
        return _json(status, told)

    app = Starlette(
        routes=[
            Route("/sync/jobs/{id:int}", guarded(job), methods=["GET"]),
            Route("/sync/jobs/{id:int}/recover", guarded(recover), methods=["POST"]),
            Route("/carbon/uploads", guarded(take_in), methods=["POST"]),
        ],
        exception_handlers={
            HTTPException: _no_such_call,  # type: ignore[dict-item]
            ClientDisconnect: _gone,
            Exception: _broken,
        },
    )
    # A client that does not follow would lose its upload and be told nothing.
    app.router.redirect_slashes = False
    return app


def _job(settings: Settings, number: int) -> dict[str, Any]:
    with closing(open_ledger(settings)) as ledger:
        found = ledger.get(number)
        if found is None:
            raise InvalidInput(f"there is no work {number}", reason_code="unknown_work")
        return _told(found) | {"events": [asdict(event) for event in ledger.events(number)]}


def _recover(settings: Settings, number: int) -> dict[str, Any]:
    """A row whose holder is dead is nobody's any more: it is taken from it first."""
    with closing(open_ledger(settings, write=True)) as ledger:
        ledger.sweep(finished_runs=())
        return _told(ledger.retry(number))


def _told(work: Work) -> dict[str, Any]:
    return asdict(work) | {"params": dict(work.params)}


def _wants(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() in ("1", "true", "yes")


async def _file(request: Request) -> File:
    asked = request.query_params
    _known(asked.multi_items())
    kind, year, mark = asked.get("kind", ""), asked.get("year", ""), asked.get("decimal")
    if kind not in ("units", "factors", "data"):
        raise InvalidInput(f"kind is {kind!r}", remedy="kind=units, kind=factors or kind=data")
    if year and not (year.isascii() and year.isdigit() and len(year) <= 4):
        raise InvalidInput(f"year is {year[:20]!r}", reason_code="bad_year", remedy="year=2025")
    if mark not in (None, "point", "comma"):
        raise InvalidInput(f"decimal is {mark!r}", remedy="decimal=point or decimal=comma")
    return File(
        kind=kind,  # type: ignore[arg-type]
        name=asked.get("name") or f"{kind}.csv",
        content=await _body(request),
        by=_by(asked.get("by", "")),
        institution=asked.get("institution") or "main",
        year=int(year) if year else None,
        data_entry_type=asked.get("type"),
        mark=mark,  # type: ignore[arg-type]
    )


def _known(asked: Iterable[tuple[str, str]]) -> None:
    """`instituion=other` would take the place of what `main` has, and nobody would be told."""
    names = [name for name, _ in asked]
    for name in names:
        if name not in SAID or names.count(name) > 1:
            fault = "is given more than once" if name in SAID else "is nothing that can be said of a file"
            raise InvalidInput(f"{name[:40]!r} {fault}", remedy=f"one each of {', '.join(SAID)}")


def _by(said: str) -> str:
    """Whoever calls says a name; that it is theirs nobody has seen."""
    if not said:
        return "api"
    if fault := fault_of_name(said):
        raise InvalidInput(f"by is {fault}", reason_code="bad_name", remedy="by=anna")
    return f"api: {said}"


async def _body(request: Request) -> bytes:
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > LARGEST:
            raise InvalidInput(f"the file is larger than {LARGEST >> 20} MiB", remedy="split it by year")
    return bytes(content)


def _upload(
    settings: Settings, file: File, accept_valid: bool, as_newest: bool
) -> tuple[int, dict[str, Any]]:
    carbon = open_carbon(settings, write=True)
    with closing(carbon.ledger):
        receipt = upload(carbon, file, accept_valid=accept_valid, as_newest=as_newest)
    return (200 if receipt.known or receipt.mended else 201), receipt.as_json()


def _refusal(error: PerennialError) -> Response:
    told: dict[str, Any] = {"error": error.message, "reason_code": error.reason_code, "remedy": error.remedy}
    if isinstance(error, FileRefused):
        told |= {"problems": [p.as_json() for p in error.problems], "problem_count": error.total}
        return _json(422, told)
    if isinstance(error, YearLocked):
        return _json(409, told)
    # What is no fault of the caller's may be over in a moment.
    return _json(_STATUS.get(error.reason_code, 400) if isinstance(error, InvalidInput) else 503, told)


async def _no_such_call(_: Request, error: HTTPException) -> Response:
    told = {"error": error.detail.lower(), "reason_code": "no_such_call", "remedy": CALLS}
    return _json(error.status_code, told, error.headers)


async def _gone(_: Request, __: Exception) -> Response:
    """Whoever hangs up in the middle of a file hears no answer, and nothing was taken in."""
    return Response(status_code=400)


async def _broken(_: Request, error: Exception) -> Response:
    """The server's log has the rest; a caller is told no more."""
    told = {"error": f"{type(error).__name__} here", "reason_code": "unclassified", "remedy": "see its log"}
    return _json(500, told)


def _json(status: int, told: Any, headers: Mapping[str, str] | None = None) -> Response:
    return Response(orjson.dumps(told, default=str), status, headers, media_type="application/json")

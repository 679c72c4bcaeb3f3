"""The HTTP interface for programs: look at a piece of work, recover it, upload a carbon file.

    GET  /sync/jobs/ID            a piece of work with its history
    POST /sync/jobs/ID/recover    queue it again: 200, or 409 while somebody is at it
    POST /carbon/uploads?kind=…   take in the file that is the body: 201; 200 if it is in, 422 if refused

It only calls what the command calls. Every answer is JSON; an error has `error`, `reason_code` and `remedy`.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import asdict
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assets.carbon.carbon import YearLocked
from assets.carbon.upload import LARGEST, File, upload
from domain.carbon.reading.problems import FileRefused
from domain.shared.error import InvalidInput, PerennialError
from orchestration.services import open_carbon, open_ledger
from orchestration.settings import Settings
from resources.ledger.model import Work

Endpoint = Callable[[Request], Awaitable[Response]]
_STATUS = {"unknown_work": 404, "already_running": 409, "unit_taken": 409}
"""By reason code, where it is not 400."""


def build_app(settings: Settings) -> Starlette:
    """One application over the settings of this process. A token, if one is set, is wanted of everybody."""

    def guarded(endpoint: Endpoint) -> Endpoint:
        async def answer(request: Request) -> Response:
            if not _knows(settings.api_token, request.headers.get("authorization", "")):
                return _json(401, {"error": "who are you?", "remedy": "Authorization: Bearer …"})
            try:
                return await endpoint(request)
            except PerennialError as error:
                return _refusal(error)

        return answer

    async def job(request: Request) -> Response:
        return _json(200, await run_in_threadpool(_job, settings, request.path_params["id"]))

    async def recover(request: Request) -> Response:
        return _json(200, await run_in_threadpool(_recover, settings, request.path_params["id"]))

    async def take_in(request: Request) -> Response:
        status, told = await run_in_threadpool(_upload, settings, await _file(request), _wants(request))
        return _json(status, told)

    return Starlette(
        routes=[
            Route("/sync/jobs/{id:int}", guarded(job), methods=["GET"]),
            Route("/sync/jobs/{id:int}/recover", guarded(recover), methods=["POST"]),
            Route("/carbon/uploads", guarded(take_in), methods=["POST"]),
        ]
    )


def _knows(token: str, said: str) -> bool:
    return not token or hmac.compare_digest(said.encode(), f"Bearer {token}".encode())


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


def _wants(request: Request) -> bool:
    return request.query_params.get("accept_valid", "").lower() in ("1", "true", "yes")


async def _file(request: Request) -> File:
    asked = request.query_params
    kind, year, mark = asked.get("kind", ""), asked.get("year", ""), asked.get("decimal")
    if kind not in ("units", "factors", "data"):
        raise InvalidInput(f"kind is {kind!r}", remedy="kind=units, kind=factors or kind=data")
    if year and not (year.isascii() and year.isdigit()):
        raise InvalidInput(f"year is {year!r}", remedy="year=2025")
    if mark not in (None, "point", "comma"):
        raise InvalidInput(f"decimal is {mark!r}", remedy="decimal=point or decimal=comma")
    return File(
        kind=kind,  # type: ignore[arg-type]
        name=asked.get("name") or f"{kind}.csv",
        content=await _body(request),
        by=asked.get("by") or "api",
        institution=asked.get("institution") or "main",
        year=int(year) if year else None,
        data_entry_type=asked.get("type"),
        mark=mark,  # type: ignore[arg-type]
    )


async def _body(request: Request) -> bytes:
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > LARGEST:
            raise InvalidInput(f"the file is larger than {LARGEST >> 20} MiB", remedy="split it by year")
    return bytes(content)


def _upload(settings: Settings, file: File, accept_valid: bool) -> tuple[int, dict[str, Any]]:
    carbon = open_carbon(settings, write=True)
    with closing(carbon.ledger):
        receipt = upload(carbon, file, accept_valid=accept_valid)
    return (200 if receipt.known else 201), receipt.as_json()


def _refusal(error: PerennialError) -> Response:
    told: dict[str, Any] = {"error": error.message, "reason_code": error.reason_code, "remedy": error.remedy}
    if isinstance(error, FileRefused):
        told |= {"problems": [p.as_json() for p in error.problems], "problem_count": error.total}
        return _json(422, told)
    if isinstance(error, YearLocked):
        return _json(409, told)
    # What is no fault of the caller's may be over in a moment.
    return _json(_STATUS.get(error.reason_code, 400) if isinstance(error, InvalidInput) else 503, told)


def _json(status: int, told: Any) -> Response:
    return Response(orjson.dumps(told, default=str), status, media_type="application/json")

"""The HTTP interface for programs: see a work item, recover it, and what the domains add.

    GET  /sync/jobs/ID            a work item with its history
    POST /sync/jobs/ID/recover    queue it again: 200, or 409 while a live worker holds it

It calls the functions that the command calls. Every answer is JSON; an error has `error`, `reason_code` and
`remedy`. `callers.py` decides who may call.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from domain.shared.error import InvalidInput, PerennialError
from domain.shared.work import Work
from orchestration.api.answers import json_response, refusal
from orchestration.api.callers import admit
from orchestration.domain import Call, Endpoint
from orchestration.registry import enabled
from orchestration.services import open_ledger
from orchestration.settings import Settings


def build_app(settings: Settings) -> Starlette:
    """Return the application for these settings."""

    def guarded(endpoint: Endpoint) -> Endpoint:
        async def answer(request: Request) -> Response:
            try:
                admit(settings, request.headers)
                return await endpoint(request)
            except PerennialError as error:
                return refusal(error)

        return answer

    async def job(request: Request) -> Response:
        return json_response(200, await run_in_threadpool(_job, settings, request.path_params["id"]))

    async def recover(request: Request) -> Response:
        return json_response(200, await run_in_threadpool(_recover, settings, request.path_params["id"]))

    calls = [
        Call("GET", "/sync/jobs/{id:int}", job),
        Call("POST", "/sync/jobs/{id:int}/recover", recover),
        *(call for domain in enabled(settings) for call in domain.calls(settings)),
    ]
    known = ", ".join(f"{call.method} {call.path.replace('{id:int}', 'ID')}" for call in calls)

    async def no_such_call(_: Request, error: HTTPException) -> Response:
        answer = {"error": error.detail.lower(), "reason_code": "no_such_call", "remedy": known}
        return json_response(error.status_code, answer, error.headers)

    app = Starlette(
        routes=[Route(call.path, guarded(call.endpoint), methods=[call.method]) for call in calls],
        exception_handlers={
            HTTPException: no_such_call,  # type: ignore[dict-item]
            ClientDisconnect: _disconnected,
            Exception: _failed,
        },
    )
    # A client that does not follow a redirect would lose its upload without an error.
    app.router.redirect_slashes = False
    return app


def _job(settings: Settings, number: int) -> dict[str, Any]:
    with closing(open_ledger(settings)) as ledger:
        work = ledger.get(number)
        if work is None:
            raise InvalidInput(f"there is no work {number}", reason_code="unknown_work")
        return _as_json(work) | {"events": [asdict(event) for event in ledger.events(number)]}


def _recover(settings: Settings, number: int) -> dict[str, Any]:
    """Queue the work item again; it is taken from a dead worker first."""
    with closing(open_ledger(settings, write=True)) as ledger:
        ledger.sweep(finished_runs=())
        return _as_json(ledger.retry(number))


def _as_json(work: Work) -> dict[str, Any]:
    return asdict(work) | {"params": dict(work.params)}


async def _disconnected(_: Request, __: Exception) -> Response:
    """The client closed the connection in the middle of a file: nothing was imported."""
    return Response(status_code=400)


async def _failed(_: Request, error: Exception) -> Response:
    """A bug; the server's log has the details."""
    answer = {"error": f"{type(error).__name__} here", "reason_code": "unclassified", "remedy": "see its log"}
    return json_response(500, answer)

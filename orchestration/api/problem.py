"""Errors as answers: `application/problem+json`, its status from one table by reason code.

Raise a `PerennialError` in an endpoint: its message is `detail`, its reason code `code`, its remedy `remedy`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import orjson
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from domain.shared.error import InvalidInput, PerennialError, TransientResourceError
from domain.shared.tabular.problems import FileRefused
from orchestration.library_errors import typed_error

MEDIA_TYPE = "application/problem+json"
Clean = Callable[[str], str]
"""Blanks the secrets of these settings in a text."""

STATUS: Mapping[str, int] = {
    "wrong_api_token": 401,
    "foreign_page": 403,
    "scope_missing": 403,
    "no_such_call": 404,
    "unknown_work": 404,
    "unknown_pipeline": 404,
    "unknown_source": 404,
    "no_report": 404,
    "no_entries": 404,
    "unknown_upload": 404,
    "not_in_feed": 404,
    "not_acceptable": 406,
    "already_running": 409,
    "already_finished": 409,
    "unit_taken": 409,
    "would_shrink": 409,
    "year_locked": 409,
    "year_busy": 409,
    "no_application": 409,
    "body_too_large": 413,
    "no_file": 415,
    "too_many_requests": 429,
    "client_gone": 400,
    "domain_off": 503,
    "ledger_schema": 503,
}
"""By reason code. Other invalid input is 422, and what is not the caller's fault 503: it may be over soon."""


class Problem(BaseModel):
    """An error. Some have more members, such as `problems` of a file, or `errors` of a request."""

    type: str = Field("about:blank", description="Always `about:blank`: `code` says what happened.")
    title: str = Field(description="The HTTP status in words.", examples=["Not Found"])
    status: int = Field(description="The HTTP status.", examples=[404])
    detail: str = Field(description="What is wrong, for people.", examples=["there is no work 77"])
    code: str = Field(description="What is wrong, for programs: a reason code.", examples=["unknown_work"])
    remedy: str = Field("", description="What to do; empty if only time helps.", examples=["see GET /work"])


def status_of(error: PerennialError) -> int:
    return STATUS.get(error.reason_code, 422 if isinstance(error, InvalidInput) else 503)


def answer_to(error: Exception, clean: Clean = str) -> Response | None:
    """Return the answer to a call that failed; None for a bug."""
    if isinstance(error, HTTPException) and isinstance(error.__cause__, PerennialError | ClientDisconnect):
        error = error.__cause__  # FastAPI wraps what is raised while it reads a body
    if isinstance(error, RequestValidationError):
        return _invalid(error, clean)
    if isinstance(error, ClientDisconnect):
        error = InvalidInput("the client closed the connection", reason_code="client_gone")
    if isinstance(error, HTTPException):
        return _of_http(error)
    known = error if isinstance(error, PerennialError) else typed_error(error)
    if known is None:
        return None
    more = {}
    if isinstance(known, FileRefused):
        more = {"problems": [p.as_json() for p in known.problems], "problem_count": known.total}
    return problem(
        status_of(known), clean(known.message), known.reason_code, clean(known.remedy), _wait(known), **more
    )


def problem(
    status: int,
    detail: str,
    code: str,
    remedy: str = "",
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Response:
    document = Problem(
        type="about:blank",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        remedy=remedy,
    )
    content = orjson.dumps({**document.model_dump(), **more}, default=str)
    return Response(content, status, headers, media_type=MEDIA_TYPE)


def _invalid(error: RequestValidationError, clean: Clean) -> Response:
    # The value that was sent is not repeated: it may be a secret in the wrong place.
    errors = [
        {
            "in": str(one["loc"][0]),
            "field": clean(".".join(map(str, one["loc"][1:])))[:100],
            "problem": clean(one["msg"]),
        }
        for one in error.errors()
    ]
    detail = "; ".join(f"{one['field'] or one['in']}: {one['problem']}" for one in errors)
    return problem(422, detail, "invalid_request", "see /openapi.json for what is expected", errors=errors)


def _of_http(error: HTTPException) -> Response:
    code = {404: "no_such_call", 405: "no_such_call"}.get(error.status_code, "invalid_request")
    return problem(
        error.status_code,
        str(error.detail).lower(),
        code,
        "see /openapi.json for the paths and methods there are",
        error.headers,
    )


def _wait(error: PerennialError) -> dict[str, str]:
    if isinstance(error, TransientResourceError) and error.retry_after:
        return {"Retry-After": str(max(1, round(error.retry_after.total_seconds())))}
    return {"WWW-Authenticate": "Bearer"} if error.reason_code == "wrong_api_token" else {}

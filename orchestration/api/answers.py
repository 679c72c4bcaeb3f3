"""The JSON answers of the HTTP interface: results, and errors with `error`, `reason_code` and `remedy`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response

from domain.shared.error import InvalidInput, PerennialError

_STATUS = {
    "unknown_work": 404,
    "already_running": 409,
    "unit_taken": 409,
    "wrong_api_token": 401,
    "foreign_page": 403,
}
"""By reason code, where it is not 400."""


def refusal(error: PerennialError, status: int | None = None, **more: Any) -> Response:
    """Return the answer to a call that failed; `status` where the reason code does not decide it."""
    answer = {"error": error.message, "reason_code": error.reason_code, "remedy": error.remedy, **more}
    # Errors that are not the caller's may be over in a moment.
    usual = _STATUS.get(error.reason_code, 400) if isinstance(error, InvalidInput) else 503
    return json_response(status or usual, answer)


def json_response(status: int, answer: Any, headers: Mapping[str, str] | None = None) -> Response:
    return Response(orjson.dumps(answer, default=str), status, headers, media_type="application/json")

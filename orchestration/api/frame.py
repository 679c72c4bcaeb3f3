"""Around every call: its id, security headers, one line in the log, and an answer whatever happens."""

from __future__ import annotations

import logging
import re
import time
import traceback
from collections.abc import Iterator
from urllib.parse import urlsplit
from uuid import uuid4

from prometheus_client import CollectorRegistry, Histogram
from pydantic import SecretStr
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestration.api.access import OPEN_PATHS
from orchestration.api.problem import Clean, answer_to, problem
from orchestration.settings import Settings
from services.setting_types import HIDDEN, as_text

log = logging.getLogger("perennial.api")

REQUEST_ID = "X-Request-ID"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer that does not set them itself."""
_ROUTINE = (*OPEN_PATHS, "/metrics")
_GIVEN_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)


class Calls:
    """How many calls there were, and how long they took, for `/metrics`. Streams are not counted."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._seconds = Histogram(
            "perennial_http_request_duration_seconds",
            "Calls of the HTTP API, by route and status.",
            ("method", "route", "status"),
            buckets=(0.005, 0.02, 0.1, 0.5, 2, 10),
            registry=self.registry,
        )

    def add(self, scope: Scope, status: int, seconds: float) -> None:
        # By route: the paths that callers send are without end.
        route = getattr(scope.get("route"), "path_format", "none")
        method = scope["method"] if route != "none" else "any"
        self._seconds.labels(method, route, str(status)).observe(seconds)


class Frame:
    """The outermost part: no error leaves it, and no secret."""

    def __init__(self, app: ASGIApp, clean: Clean, calls: Calls) -> None:
        self.app = app
        self.clean = clean
        self.calls = calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD" and not scope["path"].endswith("/stream"):  # a stream would not end
            scope = {**scope, "method": "GET"}  # the server leaves out the body: it knows what was asked
        begun, status, streams = time.perf_counter(), 0, False
        given = Headers(scope=scope).get(REQUEST_ID, "")
        call = given if _GIVEN_ID.fullmatch(given) else uuid4().hex

        async def send_framed(message: Message) -> None:
            nonlocal status, streams
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                streams = headers.get("content-type", "").startswith("text/event-stream")
                headers[REQUEST_ID] = call
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self.app(scope, receive, send_framed)
        except Exception as error:  # noqa: BLE001 - the last resort; the log has it
            answer = self._answer(error, call)
            if not status:
                await answer(scope, receive, send_framed)
        finally:
            seconds = time.perf_counter() - begun
            self._log(scope, status, seconds, call)
            if not streams:
                self.calls.add(scope, status, seconds)

    def _answer(self, error: Exception, call: str) -> Response:
        if known := answer_to(error, self.clean):
            return known
        log.error("%s failed: %s", call, self.clean("".join(traceback.format_exception(error))))
        return problem(
            500,
            "the call failed for a reason that nobody foresaw",
            "unclassified",
            f"see the log of the API for request {call}",
        )

    def _log(self, scope: Scope, status: int, seconds: float, call: str) -> None:
        # As it was sent: what is decoded may hold line breaks. The query may hold names of people.
        path = self.clean(scope.get("raw_path", scope["path"].encode()).decode("latin-1"))[:300]
        level = logging.DEBUG if scope["path"] in _ROUTINE and status < 400 else logging.INFO
        client = (scope.get("client") or ("-",))[0]
        log.log(level, "%s %s %s %.1f ms %s %s", scope["method"], path, status, seconds * 1000, client, call)


def cleaner(settings: Settings) -> Clean:
    """Return the function that blanks every secret of these settings in a text."""
    secrets = sorted(set(_secrets(settings)), key=len, reverse=True)

    def clean(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, HIDDEN)
        return text

    return clean


def _secrets(settings: Settings) -> Iterator[str]:
    for group in settings.groups():
        for name in type(group).model_fields:
            value = getattr(group, name)
            if isinstance(value, SecretStr) and value:
                yield value.get_secret_value()
            elif group.is_secret(name) and (password := urlsplit(as_text(value)).password):
                yield password

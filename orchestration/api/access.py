"""Who may call: callers with a token, and without one programs of this machine.

`PERENNIAL_API_TOKEN` may do everything, `PERENNIAL_API_READ_TOKEN` may read. The method decides what a call
needs: GET reads, every other one operates. This is checked before the body is read, so that a route does
nothing for it.

A browser sends what any page asks it to send, also to this machine. Such a call names the page in `Origin`;
a page whose own host name leads to this machine is named in `Host`. Both are refused where no token is set.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from domain.shared.error import InvalidInput
from orchestration.settings import Settings
from resources.http.address import is_loopback

OPEN_PATHS = ("/healthz", "/readyz", "/openapi.json")
"""Answered to everybody: they hold no data."""
READ_METHODS = ("GET", "HEAD")


class Access:
    """Lets only those calls through that may be answered."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            admit(self.settings, scope["method"], Headers(scope=scope))
        await self.app(scope, receive, send)


def admit(settings: Settings, method: str, headers: Mapping[str, str]) -> None:
    """Raise if this call may not be answered."""
    if not settings.api_has_token:
        _require_this_machine(settings, headers)
        return
    scheme, _, token = headers.get("authorization", "").partition(" ")
    given = token.strip().encode() if scheme.lower() == "bearer" else b""
    operates, reads = (_is(given, one) for one in (settings.api_token, settings.api_read_token))
    if not operates and not reads:
        raise InvalidInput(
            "missing or wrong bearer token",
            reason_code="wrong_api_token",
            remedy="send the header Authorization: Bearer with the token of PERENNIAL_API_TOKEN",
        )
    if not operates and method not in READ_METHODS:
        raise InvalidInput(
            "this token may read only",
            reason_code="scope_missing",
            remedy="send the token of PERENNIAL_API_TOKEN",
        )


def _is(given: bytes, token: SecretStr) -> bool:
    return hmac.compare_digest(given, token.get_secret_value().encode()) and bool(token)


def _require_this_machine(settings: Settings, headers: Mapping[str, str]) -> None:
    host, origin = headers.get("host", ""), headers.get("origin")
    if not _is_this_machine(settings, host):
        raise _foreign(f"{host[:100]!r} is not a name of this machine")
    if origin is not None and origin != f"http://{host}":
        raise _foreign(f"a page of {origin[:100]!r} may not call here")


def _is_this_machine(settings: Settings, host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    return is_loopback(name) or name == settings.api_host.lower()


def _foreign(why: str) -> InvalidInput:
    return InvalidInput(
        why,
        reason_code="foreign_page",
        remedy="call http://127.0.0.1 from a program, or set PERENNIAL_API_TOKEN and send it",
    )

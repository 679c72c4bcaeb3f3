"""Who may call the HTTP interface: callers with the token. Without a token, programs of this machine.

A browser sends what any page asks it to send, also to this machine. Such a call names the page in `Origin`;
a page whose own host name leads to this machine is named in `Host`. Both are refused.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from domain.shared.error import InvalidInput
from orchestration.settings import Settings
from resources.http.address import is_loopback


def admit(settings: Settings, headers: Mapping[str, str]) -> None:
    """Raise if this call may not be answered."""
    if settings.api_token:
        given = headers.get("authorization", "")
        expected = f"Bearer {settings.api_token.get_secret_value()}"
        if not hmac.compare_digest(given.encode(), expected.encode()):
            raise InvalidInput(
                "missing or wrong bearer token",
                reason_code="wrong_api_token",
                remedy="send the header Authorization: Bearer with the token of PERENNIAL_API_TOKEN",
            )
        return
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

"""Who may call the HTTP interface: whoever knows the token. Without one, programs of this machine, and no
page that a browser here has open.

A browser sends what any page asks it to send, to this machine too. Such a call names the page in `Origin`; a
page that has its own name lead here names that in `Host`.
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
        said = headers.get("authorization", "")
        if not hmac.compare_digest(said.encode(), f"Bearer {settings.api_token.get_secret_value()}".encode()):
            raise InvalidInput(
                "who are you?", reason_code="wrong_api_token", remedy="Authorization: Bearer …"
            )
        return
    host, origin = headers.get("host", ""), headers.get("origin")
    if not _is_here(settings, host):
        raise _foreign(f"{host[:100]!r} is no name of this machine")
    if origin is not None and origin != f"http://{host}":
        raise _foreign(f"a page of {origin[:100]!r} may not call here")


def _is_here(settings: Settings, host: str) -> bool:
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

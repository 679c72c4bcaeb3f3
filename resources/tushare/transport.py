"""Carrying one call to the server and bringing the body back: sessions, time-outs, HTTP status. No retry.

Every fault of the wire ends here as a typed error. Library exceptions hold the request they failed
on, token and all, so they are described and dropped: nothing raised here has a cause or a context.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import orjson
import requests

from domain.shared.clock import Clock, machine_clock
from domain.shared.error import InfrastructureError
from resources.tushare.errors import (
    BadAnswer,
    NotPermitted,
    RateLimited,
    SourceDown,
    SourceFails,
    TokenRefused,
    WrongAddress,
)
from resources.wire.http import (
    WIRE_FAULTS,
    BodyTooLarge,
    BodyTooSlow,
    Timeouts,
    fault_of,
    is_loopback,
    prepared,
    retry_after,
    whole_body,
)
from resources.wire.secret import Redactor, without_credentials

logger = logging.getLogger(__name__)

DEFAULT_URL = "https://api.tushare.pro/dataapi"
"""The base address of the stock client's own server, over https."""

_OFFICIAL_HOSTS = ("api.tushare.pro", "api.waditu.com")
_ONE_MINUTE = timedelta(minutes=1)


class Transport:
    """Posts bodies to `<base>/<api_name>`. Thread-safe.

    Sessions are pooled: a call takes one (the most recently used), a successful call gives it back
    with its connection still open; so there are as many connections as there are concurrent calls.
    """

    def __init__(
        self,
        url: str | None,
        *,
        redactor: Redactor,
        timeouts: Timeouts,
        session_factory: Callable[[], requests.Session] = requests.Session,
        clock: Clock = machine_clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._base, self._loopback = _base_address(url)
        self.shown_url = without_credentials(self._base)
        self._redactor = redactor
        self._timeouts = timeouts
        self._session_factory = session_factory
        self._clock = clock
        self._monotonic = monotonic
        self._idle: deque[requests.Session] = deque()

    def post(self, api_name: str, fields: str, params: Mapping[str, Any]) -> bytes:
        """The answer's body. One attempt."""
        session = self._session()
        outcome = self._exchange(session, api_name, {"params": dict(params), "fields": fields})
        if isinstance(outcome, InfrastructureError):
            session.close()
            raise outcome
        self._idle.append(session)
        return outcome

    def close(self) -> None:
        """Closes the idle connections; the transport stays usable."""
        while self._idle:
            self._idle.pop().close()

    def _session(self) -> requests.Session:
        try:
            return self._idle.pop()
        except IndexError:
            pass
        session = prepared(self._session_factory(), loopback=self._loopback)
        session.headers["Content-Type"] = "application/json"
        return session

    def _exchange(
        self, session: requests.Session, api_name: str, call: Mapping[str, Any]
    ) -> bytes | InfrastructureError:
        # Returns its errors: no frame that holds the token is part of a traceback.
        body = orjson.dumps({"api_name": api_name, "token": self._redactor.reveal(), **call}, default=str)
        deadline = self._monotonic() + self._timeouts.total
        try:
            with session.post(
                f"{self._base}/{api_name}",
                data=body,
                timeout=(self._timeouts.connect, self._timeouts.read),
                stream=True,
                allow_redirects=False,  # a redirect would carry the token to another address
            ) as response:
                content = whole_body(response, deadline, self._monotonic)
        except BodyTooLarge as error:
            return BadAnswer(f"{api_name}: {error}")
        except BodyTooSlow as error:
            return SourceDown(f"{api_name}: {error} after {self._timeouts.total:g} s")
        except WIRE_FAULTS as error:
            said = fault_of(error, self._timeouts).replace(self._base, self.shown_url)
            return SourceDown(f"{api_name}: {self._redactor.clean(said)} ({self.shown_url})")
        if response.status_code == requests.codes.ok:
            return content
        return self._refusal(response, api_name, content)

    def _refusal(self, response: requests.Response, api_name: str, content: bytes) -> InfrastructureError:
        status = response.status_code
        excerpt = self._redactor.clean(content[:2000].decode("utf-8", "replace"), limit=160)
        text = f"{api_name}: HTTP {status} from {self.shown_url}"
        if not excerpt.lstrip().startswith("<"):  # a page says nothing the status does not
            text += f": {excerpt or 'no content'}"
        if status == requests.codes.too_many_requests:
            return RateLimited(text, retry_after=retry_after(response, self._clock()) or _ONE_MINUTE)
        if status == requests.codes.unauthorized:
            return TokenRefused(text)
        if status == requests.codes.forbidden:
            return NotPermitted(text)
        if status < requests.codes.bad_request or status in (404, 405, 410):
            return WrongAddress(text)
        failed = SourceFails if status >= requests.codes.internal_server_error else SourceDown
        return failed(text, retry_after=retry_after(response, self._clock()))


def _base_address(url: str | None) -> tuple[str, bool]:
    """The base address and whether it is this machine. https, unless it is loopback or said otherwise."""
    base = (url or DEFAULT_URL).strip()
    if "://" not in base:
        base = f"{'http' if is_loopback(urlsplit(f'//{base}').hostname) else 'https'}://{base}"
    parts = urlsplit(base)
    loopback = is_loopback(parts.hostname)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WrongAddress(f"{without_credentials(base)} is no http(s) address")
    if parts.scheme == "http" and not loopback:
        logger.warning("The token travels unencrypted to %s", without_credentials(base))
    base = base.rstrip("/")
    if parts.hostname in _OFFICIAL_HOSTS and parts.path in ("", "/"):
        base += "/dataapi"  # where these hosts serve `/<api_name>`; their bare root takes another form
    return base, loopback

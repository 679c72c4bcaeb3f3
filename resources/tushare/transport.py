"""Carrying one call to the server and bringing the body back: sessions, time-outs, HTTP status. No retry.

Every fault of the wire ends here as a typed error. Library exceptions hold the request they failed
on, token and all, so they are described and dropped: nothing raised here has a cause or a context.
"""

from __future__ import annotations

import ipaddress
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import orjson
import requests
import urllib3
from requests.adapters import HTTPAdapter

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
from resources.tushare.secret import Redactor, without_credentials

logger = logging.getLogger(__name__)

DEFAULT_URL = "https://api.tushare.pro/dataapi"
"""The base address of the stock client's own server, over https."""

_OFFICIAL_HOSTS = ("api.tushare.pro", "api.waditu.com")
_LARGEST_BODY = 64 * 2**20
_CHUNK = 2**18
_ONE_MINUTE = timedelta(minutes=1)
_ONE_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Timeouts:
    """Seconds: to connect, between two bytes, and for the whole answer (a server may drip for ever)."""

    connect: float = 5.0
    read: float = 30.0
    total: float = 120.0


DEFAULT_TIMEOUTS = Timeouts()


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
        session = self._session_factory()
        adapter = HTTPAdapter(pool_connections=1, pool_maxsize=1, max_retries=0)
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        session.headers.update({"Content-Type": "application/json", "User-Agent": "perennial"})
        if self._loopback:
            session.trust_env = False  # a proxy of the environment cannot reach this machine's loopback
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
                content = self._content(response, api_name, deadline)
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            return SourceDown(f"{api_name}: {self._fault(error)} ({self.shown_url})")
        if isinstance(content, InfrastructureError) or response.status_code == requests.codes.ok:
            return content
        return self._refusal(response, api_name, content)

    def _content(
        self, response: requests.Response, api_name: str, deadline: float
    ) -> bytes | InfrastructureError:
        parts: list[bytes] = []
        size = 0
        while part := response.raw.read1(_CHUNK, decode_content=True):
            parts.append(part)
            size += len(part)
            if size > _LARGEST_BODY:
                return BadAnswer(f"{api_name}: the answer is larger than {_LARGEST_BODY >> 20} MiB")
            if self._monotonic() > deadline:
                return SourceDown(f"{api_name}: the answer was not complete after {self._timeouts.total:g} s")
        return b"".join(parts)

    def _fault(self, error: Exception) -> str:
        if isinstance(error, requests.ConnectTimeout):
            return f"no connection within {self._timeouts.connect:g} s"
        if isinstance(error, requests.Timeout | urllib3.exceptions.TimeoutError):
            return f"no answer within {self._timeouts.read:g} s"
        root = _root(error)
        said = str(root).replace(self._base, self.shown_url)
        return f"{type(root).__name__}: {self._redactor.clean(said)}"

    def _refusal(self, response: requests.Response, api_name: str, content: bytes) -> InfrastructureError:
        status = response.status_code
        excerpt = self._redactor.clean(content[:2000].decode("utf-8", "replace"), limit=160)
        text = f"{api_name}: HTTP {status} from {self.shown_url}"
        if not excerpt.lstrip().startswith("<"):  # a page says nothing the status does not
            text += f": {excerpt or 'no content'}"
        if status == requests.codes.too_many_requests:
            return RateLimited(text, retry_after=_retry_after(response, self._clock()) or _ONE_MINUTE)
        if status == requests.codes.unauthorized:
            return TokenRefused(text)
        if status == requests.codes.forbidden:
            return NotPermitted(text)
        if status < requests.codes.bad_request or status in (404, 405, 410):
            return WrongAddress(text)
        failed = SourceFails if status >= requests.codes.internal_server_error else SourceDown
        return failed(text, retry_after=_retry_after(response, self._clock()))


def _base_address(url: str | None) -> tuple[str, bool]:
    """The base address and whether it is this machine. https, unless it is loopback or said otherwise."""
    base = (url or DEFAULT_URL).strip()
    if "://" not in base:
        base = f"{'http' if _is_loopback(urlsplit(f'//{base}').hostname) else 'https'}://{base}"
    parts = urlsplit(base)
    loopback = _is_loopback(parts.hostname)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WrongAddress(f"{without_credentials(base)} is no http(s) address")
    if parts.scheme == "http" and not loopback:
        logger.warning("The token travels unencrypted to %s", without_credentials(base))
    base = base.rstrip("/")
    if parts.hostname in _OFFICIAL_HOSTS and parts.path in ("", "/"):
        base += "/dataapi"  # where these hosts serve `/<api_name>`; their bare root takes another form
    return base, loopback


def _is_loopback(host: str | None) -> bool:
    if host is None or host == "localhost":
        return host is not None
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _root(error: BaseException) -> BaseException:
    """The innermost reason: requests wraps urllib3, which wraps the socket's own error."""
    while True:
        inner = getattr(error, "reason", None)
        if not isinstance(inner, BaseException):
            inner = next((arg for arg in error.args if isinstance(arg, BaseException)), None)
        if inner is None:
            return error
        error = inner


def _retry_after(response: requests.Response, now: datetime) -> timedelta | None:
    """What the header says, in seconds or as a date; None if it says nothing usable."""
    header = response.headers.get("Retry-After", "").strip()
    if header.isdecimal():
        return min(timedelta(seconds=int(header[:9])), _ONE_DAY)
    try:
        until = parsedate_to_datetime(header)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return min(max(until - now, timedelta(seconds=1)), _ONE_DAY)

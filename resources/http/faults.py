"""What can go wrong in an HTTP exchange, and which error of a service it becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import requests
import urllib3

from domain.shared.error import InfrastructureError, TransientResourceError
from domain.shared.printable import printable

WIRE_FAULTS = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)
"""What the libraries raise when a call does not come through."""
_ONE_DAY = timedelta(days=1)
_ONE_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Timeouts:
    """Seconds: to connect, between two bytes, and for the whole answer (a server may send for ever)."""

    connect: float = 5.0
    read: float = 30.0
    total: float = 120.0


DEFAULT_TIMEOUTS = Timeouts()


@dataclass(frozen=True)
class ErrorTypes:
    """The errors of one service, by what the exchange met. Each is called with the message."""

    down: type[TransientResourceError]
    """A time-out, a broken connection, a status that has no better name."""
    failing: type[TransientResourceError]
    """HTTP 5xx."""
    rate_limited: type[TransientResourceError]
    """HTTP 429; `retry_after` is a minute if the service does not say how long."""
    bad_body: type[TransientResourceError]
    """A body that is too large or not what the protocol says."""
    unauthorized: Callable[[str], InfrastructureError]
    forbidden: Callable[[str], InfrastructureError]
    wrong_address: Callable[[str], InfrastructureError]
    """A redirect, HTTP 404, 405 or 410, a web page instead of JSON."""

    def of_status(self, status: int, text: str, retry_after: timedelta | None) -> InfrastructureError:
        """The error for a status that is no success."""
        if status == requests.codes.too_many_requests:
            return self.rate_limited(text, retry_after=retry_after or _ONE_MINUTE)
        if status == requests.codes.unauthorized:
            return self.unauthorized(text)
        if status == requests.codes.forbidden:
            return self.forbidden(text)
        if status < requests.codes.bad_request or status in (404, 405, 410):
            return self.wrong_address(text)
        failed = self.failing if status >= requests.codes.internal_server_error else self.down
        return failed(text, retry_after=retry_after)


def describe_fault(error: Exception, timeouts: Timeouts) -> str:
    """What went wrong, in a sentence. It may hold the address: redact it before it is shown."""
    if isinstance(error, requests.ConnectTimeout):
        return f"no connection within {timeouts.connect:g} s"
    if isinstance(error, requests.Timeout | urllib3.exceptions.TimeoutError):
        return f"no answer within {timeouts.read:g} s"
    root = _root_cause(error)
    # Of a server that speaks no HTTP it quotes what it sent, which may be commands for a terminal.
    return f"{type(root).__name__}: {printable(str(root))}"


def _root_cause(error: BaseException) -> BaseException:
    """The innermost reason: requests wraps urllib3, which wraps the socket's own error."""
    while True:
        inner = getattr(error, "reason", None)
        if not isinstance(inner, BaseException):
            inner = next((arg for arg in error.args if isinstance(arg, BaseException)), None)
        if inner is None:
            return error
        error = inner


def retry_after(response: requests.Response, now: datetime) -> timedelta | None:
    """The wait that the header Retry-After asks for, in seconds or as a date; None if it is not usable."""
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

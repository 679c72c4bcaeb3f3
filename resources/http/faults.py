"""Faults of the HTTP libraries and headers of refusals, as texts and values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import requests
import urllib3

from domain.shared.printable import printable

WIRE_FAULTS = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)
"""What the libraries raise when a call does not come through."""
_ONE_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Timeouts:
    """Seconds: to connect, between two bytes, and for the whole answer (a server may send for ever)."""

    connect: float = 5.0
    read: float = 30.0
    total: float = 120.0


DEFAULT_TIMEOUTS = Timeouts()


def describe_fault(error: Exception, timeouts: Timeouts) -> str:
    """What went wrong, in a sentence. It may hold the address: redact it before it is shown."""
    if isinstance(error, requests.ConnectTimeout):
        return f"no connection within {timeouts.connect:g} s"
    if isinstance(error, requests.Timeout | urllib3.exceptions.TimeoutError):
        return f"no answer within {timeouts.read:g} s"
    root = _root_cause(error)
    if isinstance(root, urllib3.exceptions.NewConnectionError):
        # Its text begins with an object of the library, which says nothing to a person.
        return f"no connection: {printable(str(root).partition('): ')[2] or str(root))}"
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

"""What every client of ours does with HTTP: time-outs, bounded bodies, faults and waits in plain words."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import requests
import urllib3
from requests.adapters import HTTPAdapter

from domain.shared.printable import printable

LARGEST_BODY = 64 * 2**20
_CHUNK = 2**18
_ONE_DAY = timedelta(days=1)

WIRE_FAULTS = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)
"""What the libraries raise when a call does not come through."""


@dataclass(frozen=True)
class Timeouts:
    """Seconds: to connect, between two bytes, and for the whole answer (a server may drip for ever)."""

    connect: float = 5.0
    read: float = 30.0
    total: float = 120.0


DEFAULT_TIMEOUTS = Timeouts()


class BodyTooLarge(Exception):
    """More than anybody meant to send."""


class BodyTooSlow(Exception):
    """Some of it came, and it did not end in time."""


def prepared(session: requests.Session, *, loopback: bool) -> requests.Session:
    """A session that tries once, over one connection, under our name."""
    adapter = HTTPAdapter(pool_connections=1, pool_maxsize=1, max_retries=0)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    session.headers.update({"User-Agent": "perennial"})
    if loopback:
        session.trust_env = False  # a proxy of the environment cannot reach this machine's loopback
    return session


def whole_body(
    response: requests.Response, deadline: float, monotonic: Callable[[], float] = time.monotonic
) -> bytes:
    """The body of a streamed response, bounded in size and time."""
    parts: list[bytes] = []
    size = 0
    while part := response.raw.read1(_CHUNK, decode_content=True):
        parts.append(part)
        size += len(part)
        if size > LARGEST_BODY:
            raise BodyTooLarge(f"the answer is larger than {LARGEST_BODY >> 20} MiB")
        if monotonic() > deadline:
            raise BodyTooSlow("the answer was not complete")
    return b"".join(parts)


def fault_of(error: Exception, timeouts: Timeouts) -> str:
    """What went wrong on the wire. It may hold the address: whoever shows it redacts it first."""
    if isinstance(error, requests.ConnectTimeout):
        return f"no connection within {timeouts.connect:g} s"
    if isinstance(error, requests.Timeout | urllib3.exceptions.TimeoutError):
        return f"no answer within {timeouts.read:g} s"
    root = _root(error)
    # Of a server that speaks no HTTP it quotes what it said, which may be commands for a terminal.
    return f"{type(root).__name__}: {printable(str(root))}"


def _root(error: BaseException) -> BaseException:
    """The innermost reason: requests wraps urllib3, which wraps the socket's own error."""
    while True:
        inner = getattr(error, "reason", None)
        if not isinstance(inner, BaseException):
            inner = next((arg for arg in error.args if isinstance(arg, BaseException)), None)
        if inner is None:
            return error
        error = inner


def is_loopback(host: str | None) -> bool:
    if host is None or host == "localhost":
        return host is not None
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def retry_after(response: requests.Response, now: datetime) -> timedelta | None:
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

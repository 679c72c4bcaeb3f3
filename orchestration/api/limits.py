"""How much a caller may send: bytes of a body, requests in a second, requests at once."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from domain.shared.error import InvalidInput, TransientResourceError

LARGEST_BODY = 1 << 20
"""Bytes of a body, unless the route has `openapi_extra=body_limit(…)`."""
LARGEST_TOGETHER = 3 << 29
"""Bytes of all bodies that are held at once; a request with a small one is answered beyond that too."""
AT_ONCE = 500
"""Requests, streams among them: below the files a process may have open."""
CLIENTS = 10_000
"""Addresses whose rate is remembered."""
_LIMIT = "x-largest-body"


def body_limit(size: int) -> dict[str, Any]:
    """Return `openapi_extra` of a route that takes bodies of up to this size."""
    return {_LIMIT: size}


class Limits:
    """Refuses what is too much, with `Retry-After` where waiting helps."""

    def __init__(self, app: ASGIApp, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.app = app
        self.rate = Rate(rate, clock)
        self.running = 0
        self.held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if wait := self.rate.wait((scope.get("client") or ("",))[0]):
            raise _too_many("too many requests from this address", wait)
        if self.running >= AT_ONCE:
            raise _too_many(f"{AT_ONCE} requests are being answered", 1.0)
        self.running += 1
        body = Body(self, scope, receive)
        try:
            await self.app(scope, body.receive, send)
        finally:
            self.running -= 1
            self.held -= body.read


class Rate:
    """A token bucket per client: `rate` requests in a second, twice as many at once."""

    def __init__(self, rate: float, clock: Callable[[], float]) -> None:
        self.rate, self.burst, self.clock = rate, max(1.0, 2 * rate), clock
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """Take one request of a client; return the seconds until it has one if there is none."""
        now = self.clock()
        left, then = self.buckets.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - then) * self.rate)
        self.buckets[client] = (left - 1 if left >= 1 else left, now)
        if len(self.buckets) > CLIENTS:
            self.buckets.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) / self.rate


class Body:
    """The body of one request; raises once it is larger than its route takes, or there is no room for it."""

    def __init__(self, limits: Limits, scope: Scope, receive: Receive) -> None:
        self._limits, self._scope, self._receive = limits, scope, receive
        declared = Headers(scope=scope).get("content-length", "")
        self._declared = int(declared) if declared.isdigit() and len(declared) < 20 else 0
        self.read = 0

    async def receive(self) -> Message:
        largest = _largest(self._scope)
        if self._declared > largest:
            raise _too_large(largest)
        message = await self._receive()
        size = len(message.get("body", b""))
        self.read += size
        self._limits.held += size
        if self.read > largest:
            raise _too_large(largest)
        if self.read > LARGEST_BODY and self._limits.held > LARGEST_TOGETHER:
            raise TransientResourceError(
                "other large files are being received",
                reason_code="too_many_files",
                remedy="wait as long as Retry-After says",
                retry_after=timedelta(seconds=10),
            )
        return message


def _largest(scope: Scope) -> int:
    extra = getattr(scope.get("route"), "openapi_extra", None) or {}
    return int(extra.get(_LIMIT, LARGEST_BODY))


def _too_large(largest: int) -> InvalidInput:
    return InvalidInput(
        f"the body is larger than {largest:,} bytes", reason_code="body_too_large", remedy="send less at once"
    )


def _too_many(what: str, wait: float) -> TransientResourceError:
    return TransientResourceError(
        what,
        reason_code="too_many_requests",
        remedy="wait as long as Retry-After says; PERENNIAL_API_RATE is the limit",
        retry_after=timedelta(seconds=wait),
    )

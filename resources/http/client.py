"""The one HTTP client: sessions, limits, a deadline, redaction, status to typed errors, pages.

One attempt per call: waiting and trying again belong to the work ledger and to Dagster. Errors of the
libraries hold the request they failed on, secret and all, so they are described and dropped: an error
raised here has no cause, no context, and no frame that holds the secret.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson
import requests
from requests.adapters import HTTPAdapter

from domain.shared.clock import Clock, machine_clock
from domain.shared.error import InfrastructureError
from resources.http.address import is_loopback, without_credentials
from resources.http.errors import ErrorTypes
from resources.http.faults import (
    DEFAULT_TIMEOUTS,
    WIRE_FAULTS,
    Timeouts,
    describe_fault,
    retry_after,
)
from resources.http.secret import Redactor

T = TypeVar("T")
MOST_BYTES = 64 * 2**20
MOST_PAGES = 100_000
"""A bound: a server that always has another page would never be done with."""
_CHUNK = 2**18
_EXCERPT = 2_000
"""Bytes of a refusal that are read; far fewer are shown."""


@dataclass(frozen=True)
class Call:
    """One request. With a payload it is a POST: a mapping is sent as JSON, bytes as they are."""

    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    payload: Mapping[str, Any] | bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    most_bytes: int = MOST_BYTES


@dataclass(frozen=True)
class Received:
    """A whole answer. `unchanged` is HTTP 304: the condition of the request holds, and there is no body."""

    body: bytes
    headers: Mapping[str, str]
    unchanged: bool


class HttpClient:
    """One service. Thread-safe.

    `secret` is sent as a bearer token, as the header `secret_header`, or as `secret_field` of every JSON
    payload. Sessions are pooled: a
    call takes the most recently used one and a successful call gives it back with its connection open, so
    there are as many connections as concurrent calls.
    """

    def __init__(
        self,
        url: str,
        *,
        errors: ErrorTypes,
        secret: str = "",
        secret_field: str | None = None,
        secret_header: str | None = None,
        clock: Clock = machine_clock,
    ) -> None:
        self._url = url.rstrip("/")
        self.shown_url = without_credentials(self._url)
        self._errors = errors
        self._redactor = Redactor(secret)
        self.clean = self._redactor.clean
        self._secret_field = secret_field
        self._secret_header = secret_header
        self._clock = clock
        self._idle: deque[requests.Session] = deque()

    def __repr__(self) -> str:
        return f"HttpClient({self.shown_url!r})"

    def close(self) -> None:
        """Closes the idle connections; the client stays usable."""
        while self._idle:
            _close(self._idle.pop())

    def send(self, call: Call) -> bytes:
        """The whole body of a successful answer."""
        return b"".join(self.stream(call))

    def receive(self, call: Call) -> Received:
        """The whole body of a successful answer with its headers, or that nothing changed."""
        begun: list[tuple[int, Mapping[str, str]]] = []
        body = b"".join(self._stream(call, begun))
        [(status, headers)] = begun
        return Received(body, headers, status == HTTPStatus.NOT_MODIFIED)

    def stream(self, call: Call) -> Iterator[bytes]:
        """The body of a successful answer, piece by piece, within the call's limits."""
        return self._stream(call)

    def _stream(
        self, call: Call, begun: list[tuple[int, Mapping[str, str]]] | None = None
    ) -> Iterator[bytes]:
        # `begun` gets status and headers of the answer; without it HTTP 304 is a refusal.
        deadline = time.monotonic() + call.timeouts.total
        session = self._session()
        try:
            response = self._open(session, call)
            if isinstance(response, InfrastructureError):
                raise response
            with response:
                unchanged = begun is not None and response.status_code == HTTPStatus.NOT_MODIFIED
                if not (200 <= response.status_code < 300 or unchanged):
                    raise self._refusal(response, call, deadline)
                if begun is not None:
                    begun.append((response.status_code, response.headers))
                yield from self._body(response, call, deadline)
        except BaseException:
            _close(session)
            raise
        self._idle.append(session)

    def read_json(self, call: Call, read: Callable[[dict[str, Any]], T]) -> T:
        """What `read` makes of a JSON object; a KeyError, TypeError or ValueError of it is a bad body."""
        outcome = self._parsed(call.path, self.send(call), read)
        if isinstance(outcome, InfrastructureError):
            raise outcome
        return outcome

    def receive_json(self, call: Call, read: Callable[[Any], T]) -> tuple[T, Mapping[str, str]] | None:
        """The same of a JSON object or list, with the headers of the answer; None if nothing changed."""
        received = self.receive(call)
        if received.unchanged:
            return None
        outcome, headers = self._parsed(call.path, received.body, read, (dict, list)), received.headers
        del received  # no frame of a traceback holds a body, which may echo the secret
        if isinstance(outcome, InfrastructureError):
            raise outcome
        return outcome, headers

    def pages(
        self, call: Call, read: Callable[[dict[str, Any]], tuple[T, Mapping[str, str] | None]]
    ) -> Iterator[T]:
        """One value per page. `read` also gives the parameters of the next page, None after the last."""
        for _ in range(MOST_PAGES):
            value, following = self.read_json(call, read)
            yield value
            if following is None:
                return
            if following == call.params:
                raise self.bad_body(call.path, "the next page is this one")
            call = replace(call, params=following)
        raise self.bad_body(call.path, f"more than {MOST_PAGES:,} pages")

    def bad_body(self, path: str, problem: str) -> InfrastructureError:
        """The error for an answer that breaks the service's protocol."""
        return self._errors.bad_body(self._text(path, problem))

    def _session(self) -> requests.Session:
        try:
            return self._idle.pop()
        except IndexError:
            pass
        session = requests.Session()
        adapter = HTTPAdapter(pool_connections=1, pool_maxsize=1, max_retries=0)
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        session.headers["User-Agent"] = "perennial"
        if is_loopback(urlsplit(self._url).hostname):
            session.trust_env = False  # a proxy of the environment cannot reach this machine's loopback
        return session

    def _open(self, session: requests.Session, call: Call) -> requests.Response | InfrastructureError:
        # Returns its errors: no frame that holds the secret is part of a traceback.
        secret = self._redactor.reveal()
        payload, headers = call.payload, dict(call.headers)
        if isinstance(payload, Mapping):
            fields = {self._secret_field: secret} if self._secret_field else {}
            payload = orjson.dumps({**fields, **payload}, default=str)
            headers["Content-Type"] = "application/json"
        if secret and self._secret_header:
            headers[self._secret_header] = secret
        elif secret and not self._secret_field:
            headers["Authorization"] = f"Bearer {secret}"
        try:
            return session.request(
                "GET" if payload is None else "POST",
                f"{self._url}/{call.path}",
                params=dict(call.params),
                data=payload,
                headers=headers,
                timeout=(call.timeouts.connect, call.timeouts.read),
                stream=True,
                allow_redirects=False,  # a redirect would carry the secret to another address
            )
        except WIRE_FAULTS as error:
            return self._fault(call, error)

    def _body(self, response: requests.Response, call: Call, deadline: float) -> Iterator[bytes]:
        size = 0
        while part := self._next_part(response, call, deadline):
            if isinstance(part, InfrastructureError):
                raise part
            size += len(part)
            if size > call.most_bytes:
                raise self.bad_body(call.path, f"the answer is larger than {call.most_bytes >> 20:,} MiB")
            yield part

    def _next_part(
        self, response: requests.Response, call: Call, deadline: float
    ) -> bytes | InfrastructureError:
        try:
            part: bytes = response.raw.read1(_CHUNK, decode_content=True)
        except WIRE_FAULTS as error:
            return self._fault(call, error)
        if part and time.monotonic() > deadline:
            text = f"the answer was not complete after {call.timeouts.total:g} s"
            return self._errors.down(self._text(call.path, text))
        return part

    def _refusal(self, response: requests.Response, call: Call, deadline: float) -> InfrastructureError:
        content = b""
        while len(content) < _EXCERPT:
            part = self._next_part(response, call, deadline)
            if isinstance(part, InfrastructureError) or not part:
                break
            content += part
        excerpt = self.clean(content[:_EXCERPT].decode("utf-8", "replace"), limit=160)
        text = f"{call.path}: HTTP {response.status_code} from {self.shown_url}"
        if location := response.headers.get("Location"):
            text += f", which names {self.clean(without_credentials(location))}"
        if not excerpt.startswith("<"):  # a page says nothing that the status does not
            text += f": {excerpt or 'no content'}"
        return self._errors.of_status(response.status_code, text, retry_after(response, self._clock()))

    def _parsed(
        self, path: str, body: bytes, read: Callable[[Any], T], wanted: tuple[type, ...] = (dict,)
    ) -> T | InfrastructureError:
        # Returns its errors: a body may echo the secret.
        try:
            document = orjson.loads(body)
            if isinstance(document, wanted):
                return read(document)
            problem = "the answer is no object"
        except KeyError as error:
            problem = f"it lacks {error}"
        except (TypeError, ValueError) as error:
            problem = str(error)
        if body.lstrip()[:1] == b"<":
            return self._errors.wrong_address(self._text(path, "a web page instead of JSON"))
        return self.bad_body(path, problem)

    def _fault(self, call: Call, error: Exception) -> InfrastructureError:
        text = describe_fault(error, call.timeouts).replace(self._url, self.shown_url)
        return self._errors.down(self._text(call.path, text))

    def _text(self, path: str, text: str) -> str:
        return f"{path}: {self.clean(text)} ({self.shown_url})"


def _close(session: requests.Session) -> None:
    """Close a session and its connections, which `Session.close` leaves to the garbage collector: an error
    that is kept until its run ends would keep its connection open."""
    for adapter in session.adapters.values():
        if isinstance(adapter, HTTPAdapter):
            pools = adapter.poolmanager.pools
            for pool in [pools[key] for key in pools.keys()]:  # noqa: SIM118 - no mapping: it cannot be iterated
                pool.close()
    session.close()

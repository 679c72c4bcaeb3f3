"""From a request's body to an answer, before any of it touches a socket."""

from __future__ import annotations

import itertools
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from domain.shared.clock import Clock
from sandbox import answers, faults, messages
from sandbox.accounts import Gate
from sandbox.calls import Call, Calls, shown
from sandbox.endpoints import ENDPOINTS, SHANGHAI, Endpoint
from sandbox.exchange import Exchange
from sandbox.faults import Fault, Faults
from sandbox.market import reference
from sandbox.messages import Refusal
from sandbox.query import Query, parse

HTML = (
    "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head>"
    "<body><center><h1>502 Bad Gateway</h1></center><hr><center>nginx</center></body></html>"
)


@dataclass(frozen=True)
class Answer:
    """What to send, and how to spoil the sending: wait `stall` seconds, or break off half-way."""

    body: bytes
    status: int = 200
    content_type: str = "application/json; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    stall: float = 0.0
    reset: bool = False


@dataclass(frozen=True)
class Request:
    """A body that is a JSON object; anything in it may still be wrong."""

    api: str
    token: object
    params: Mapping[str, Any]
    fields: str

    @classmethod
    def from_body(cls, path: str, body: bytes) -> Request:
        """The api is named in the body or, failing that, by the path."""
        try:
            raw = orjson.loads(body)
        except orjson.JSONDecodeError:
            raise messages.rubbish() from None
        if not isinstance(raw, dict):
            raise messages.rubbish()
        params, fields = raw.get("params") or {}, raw.get("fields") or ""
        if not isinstance(params, dict):
            raise messages.rubbish()
        if isinstance(fields, list):
            fields = ",".join(map(str, fields))
        api = raw.get("api_name") or path.strip("/").rsplit("/", 1)[-1]
        return cls(str(api), raw.get("token"), params, str(fields))


class Service:
    """Answers of one exchange at one clock. Safe from any thread."""

    def __init__(self, exchange: Exchange, clock: Clock, gate: Gate, rules: Faults) -> None:
        self.exchange = exchange
        self.clock = clock
        self.gate = gate
        self.faults = rules
        self.calls = Calls()
        self._kept = answers.Kept()
        self._numbers = itertools.count(1)

    def answer(self, path: str, body: bytes) -> Answer:
        started = time.perf_counter()
        now = self.clock()
        seen = _Seen()
        try:
            answer = self._answer(Request.from_body(path, body), now, seen)
        except Refusal as refusal:
            seen.code = refusal.code
            answer = self._sent(answers.encode_refusal(refusal), seen.struck)
        self.calls.add(
            Call(
                at=now.isoformat(),
                api=seen.api,
                params=seen.params,
                status=answer.status,
                code=seen.code,
                rows=seen.rows,
                faults=tuple(rule.kind for rule in seen.struck),
                milliseconds=round((time.perf_counter() - started) * 1000, 3),
            )
        )
        return answer

    def _answer(self, request: Request, now: datetime, seen: _Seen) -> Answer:
        endpoint = ENDPOINTS.get(request.api)
        seen.params = shown(request.params)
        if endpoint is not None:
            seen.api = endpoint.name
            readable = _readable(endpoint, request)
            seen.struck = self.faults.strike(readable) if readable else ()
        spoiled = _spoiled(seen.struck, seen.api)
        if spoiled is not None:
            return spoiled
        # Tushare looks at the token before it looks at anything else.
        self.gate.check(request.token, endpoint or _NO_ENDPOINT)
        if endpoint is None:
            raise messages.unknown_api()
        query = parse(endpoint, request.params, request.fields)
        tail, seen.rows = self._rows(query, seen.struck, now)
        seen.code = 0
        return self._sent(tail, seen.struck)

    def _rows(self, query: Query, struck: tuple[Fault, ...], now: datetime) -> answers.Made:
        changes = [rule for rule in struck if rule.changes_data]

        def make() -> answers.Made:
            page = self.exchange.rows(query, now)
            columns = page.columns
            for rule in changes:
                columns = faults.apply(rule, query, columns)
            count = len(next(iter(columns.values())))
            return answers.encode_rows(query.fields, columns, page.has_more), count

        return make() if changes else self._kept.get((query, _visible(query, now)), make)

    def _sent(self, tail: bytes, struck: tuple[Fault, ...]) -> Answer:
        body = answers.envelope(f"{next(self._numbers):032x}", tail)
        last = struck[-1] if struck else None
        if last is not None and last.kind == "truncate":
            return Answer(body[: max(1, len(body) // 2)])
        return Answer(
            body,
            stall=last.seconds if last is not None and last.kind == "stall" else 0.0,
            reset=last is not None and last.kind == "reset",
        )


_NO_ENDPOINT = Endpoint("unknown", (), frozenset(), points=0)
"""What an unknown api is to the gate: it needs no points, but the token must be right."""


@dataclass
class _Seen:
    """What is known of a call so far. `code` None: no JSON answer was sent."""

    api: str = "unknown"
    params: Mapping[str, str] = field(default_factory=dict)
    code: int | None = None
    rows: int = 0
    struck: tuple[Fault, ...] = ()


def _spoiled(struck: tuple[Fault, ...], api: str) -> Answer | None:
    """The answer of a fault that replaces ours; raises where it is one of Tushare's refusals."""
    last = struck[-1] if struck else None
    if last is None or last.changes_data:
        return None
    if last.kind in faults.REFUSAL_KINDS:
        raise last.refusal(api)
    if last.kind in faults.HTTP_KINDS:
        status = faults.HTTP_KINDS[last.kind]
        headers = {"Retry-After": "1"} if status in (429, 503) else {}
        return Answer(f"<html><body>{status}</body></html>".encode(), status, "text/html", headers)
    if last.kind == "html":
        return Answer(HTML.encode(), 200, "text/html; charset=utf-8")
    return None


def _readable(endpoint: Endpoint, request: Request) -> Query | None:
    """The query, None where it cannot be read: such calls get their refusal, not a fault."""
    try:
        return parse(endpoint, request.params, request.fields)
    except Refusal:
        return None


def _visible(query: Query, now: datetime) -> Hashable:
    """Whatever of the clock an answer depends on."""
    today = now.astimezone(SHANGHAI).date()
    if query.endpoint.name == "trade_cal":
        return reference.announced_until(today)
    if not query.endpoint.by_day:
        return today
    until = query.endpoint.visible_until(now)
    return query.trade_date <= until if query.trade_date else until

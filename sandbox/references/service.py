"""The made-up sources of references over HTTP: atlas, JSON in pages; herald, an RSS feed.

    GET /references/atlas?page=2            {"items": […], "page": 2, "next": 3, "total": 205}
    GET /references/atlas?cursor=20         the same, one page leading to the next
    GET /references/atlas?updated_since=…   only what changed since
    GET /references/herald.xml              the newest 40 entries

Both send an ETag and Last-Modified, and answer 304 to what asks with them, unless a fault strikes.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from domain.shared.clock import Clock
from sandbox import faults
from sandbox.calls import Call, Calls, shown
from sandbox.endpoints import Endpoint
from sandbox.faults import Fault, Faults
from sandbox.query import Query
from sandbox.references.feed import render_feed
from sandbox.references.library import ATLAS, HERALD
from sandbox.references.spoil import spoil_items, spoil_text
from sandbox.service import HTML, Answer

PREFIX = "/references/"
PAGE = 20
ENTRIES = 40
_QUERIES = {
    f"{PREFIX}{path}": Query(Endpoint(name, (), frozenset()), ())
    for path, name in (("atlas", "atlas"), ("herald.xml", "herald"))
}


class ReferenceService:
    """Answers of the made-up sources at one clock. Safe from any thread."""

    def __init__(self, clock: Clock, rules: Faults, calls: Calls) -> None:
        self._clock = clock
        self._faults = rules
        self._calls = calls

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        started, now = time.perf_counter(), self._clock()
        parts = urlsplit(path)
        params = dict(parse_qsl(parts.query))
        query = _QUERIES.get(parts.path)
        if query is None:
            return Answer(b"no such source\n", 404, "text/plain")
        name = query.endpoint.name
        struck = self._faults.strike(query)
        answer = _failed(struck) or _conditional(_SOURCES[name](params, now, struck), headers, struck)
        self._calls.add(
            Call(
                at=now.isoformat(),
                api=name,
                params=shown(params),
                status=answer.status,
                code=0 if answer.status < 400 else answer.status,
                rows=0,
                faults=tuple(rule.kind for rule in struck),
                milliseconds=round((time.perf_counter() - started) * 1000, 3),
            )
        )
        return answer


def _failed(struck: tuple[Fault, ...]) -> Answer | None:
    """Return the answer of a fault that replaces ours."""
    for rule in struck:
        if rule.kind in faults.HTTP_KINDS:
            status = faults.HTTP_KINDS[rule.kind]
            headers = {"Retry-After": "1"} if status in (429, 503) else {}
            return Answer(f"<html><body>{status}</body></html>".encode(), status, "text/html", headers)
        if rule.kind in faults.REFUSAL_KINDS:
            return Answer(b'{"error": "too many requests"}', 429, headers={"Retry-After": "60"})
        if rule.kind == "html":
            return Answer(HTML.encode(), 200, "text/html; charset=utf-8")
    return None


def _conditional(answer: Answer, asked: Mapping[str, str], struck: tuple[Fault, ...]) -> Answer:
    """Return the answer, or HTTP 304 if the caller has it; spoiled in the sending as the faults say.

    A fault is always met, also by who has the content already: else it would do nothing in most tries.
    """
    known = asked.get("If-None-Match") == answer.headers["ETag"] or (
        "If-None-Match" not in asked and asked.get("If-Modified-Since") == answer.headers["Last-Modified"]
    )
    unchanged = known and not struck
    last = struck[-1] if struck else None
    body = b"" if unchanged else answer.body
    if last is not None and last.kind == "truncate":
        body = body[: len(body) // 2]
    return Answer(
        body,
        304 if unchanged else 200,
        answer.content_type,
        answer.headers,
        stall=last.seconds if last is not None and last.kind == "stall" else 0.0,
        reset=last is not None and last.kind == "reset",
    )


def _atlas(params: Mapping[str, str], now: datetime, struck: tuple[Fault, ...]) -> Answer:
    items = spoil_items(ATLAS.references(now), struck)
    if since := params.get("updated_since"):
        items = [item for item in items if item["updated_at"] > since]
    by_cursor = "cursor" in params
    first = _number(params.get("cursor"), 0) if by_cursor else (_number(params.get("page"), 1) - 1) * PAGE
    page = items[max(0, first) : max(0, first) + PAGE]
    more = first + PAGE < len(items)
    following = (str(first + PAGE) if by_cursor else first // PAGE + 2) if more else None
    document: dict[str, Any] = {
        "items": page,
        "page": first // PAGE + 1,
        "next": following,
        "total": len(items),
    }
    content = orjson.dumps(items, option=orjson.OPT_SORT_KEYS)
    return _made(spoil_text(document, struck), "application/json; charset=utf-8", content, items)


def _herald(_: Mapping[str, str], now: datetime, struck: tuple[Fault, ...]) -> Answer:
    items = spoil_items(HERALD.references(now), struck)[:ENTRIES]
    body = render_feed(items, struck)
    return _made(body, "application/rss+xml; charset=utf-8", body, items)


def _made(body: bytes, content_type: str, content: bytes, items: list[dict[str, Any]]) -> Answer:
    changed = max((datetime.fromisoformat(item["updated_at"]) for item in items), default=None)
    headers = {
        "ETag": f'"{hashlib.sha256(content).hexdigest()[:16]}"',
        "Last-Modified": format_datetime(changed) if changed else "",
    }
    return Answer(body, 200, content_type, headers)


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else default


_SOURCES: Mapping[str, Callable[[Mapping[str, str], datetime, tuple[Fault, ...]], Answer]] = {
    "atlas": _atlas,
    "herald": _herald,
}

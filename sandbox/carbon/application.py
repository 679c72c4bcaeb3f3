"""An application that keeps units, factors and entries, as a server: its feed of changes, and its rows.

Each edit gives its place a new version and a number in the feed. Faults on demand, and a page size that makes
pages meet edits.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit


class Place(NamedTuple):
    data_entry_type: str
    """Empty of units."""
    year: int
    institution: str = "main"
    kind: str = "entries"


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Application:
    """What it holds. `fault` answers in its place, given the path; None lets the call through."""

    token: str = ""
    page_size: int = 1_000
    rows: dict[Place, list[Mapping[str, Any]]] = field(default_factory=dict)
    edits: list[Place] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    fault: Callable[[str], Answer | None] = lambda _: None
    on_page: Callable[[int], None] = lambda _: None
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def save(self, place: Place, rows: Sequence[Mapping[str, Any]]) -> None:
        """People edited a place: this is what it holds now."""
        with self._lock:
            self.rows[place] = list(rows)
            self.edits.append(place)

    def version(self, place: Place) -> str:
        return f"{self.edits.count(place)}"

    # The feed

    def answer(self, target: str, authorization: str) -> Answer:
        self.calls.append(target)
        parts = urlsplit(target)
        if (broken := self.fault(parts.path)) is not None:
            return broken
        if self.token and authorization != f"Bearer {self.token}":
            return Answer(401, b'{"error": "who are you?"}')
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        with self._lock:
            if parts.path == "/changes":
                return _json(self._changes(int(asked.get("after", 0))))
            if (kind := parts.path.strip("/")) in ("units", "factors", "entries"):
                name = asked.get("data_entry_type", "")
                place = Place(name, int(asked["year"]), asked["institution"], kind)
                return _json(self._page(place, int(asked.get("page", 0))))
        return Answer(404, b'{"error": "no such thing"}')

    def _changes(self, after: int) -> dict[str, Any]:
        edits = self.edits[after : after + self.page_size]
        cursor = after + len(edits)
        return {
            "changes": [p._asdict() | {"version": self.version(p)} for p in dict.fromkeys(edits)],
            "cursor": str(cursor),
            "more": cursor < len(self.edits),
        }

    def _page(self, place: Place, number: int) -> dict[str, Any]:
        self.on_page(number)
        begin = number * self.page_size
        rows = self.rows.get(place, [])
        more = begin + self.page_size < len(rows)
        return {
            "version": self.version(place),
            place.kind: rows[begin : begin + self.page_size],
            "next": number + 1 if more else None,
        }


def _json(value: Any) -> Answer:
    return Answer(200, json.dumps(value).encode())


@contextmanager
def serving(application: Application, port: int = 0) -> Iterator[str]:
    """The address at which it answers on this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer = application.answer(self.path, self.headers.get("Authorization", ""))
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(answer.body)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            """Calls are kept in the application."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="application", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

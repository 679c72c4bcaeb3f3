"""The sandbox as an HTTP/1.1 server: threads, keep-alive, bounded in connections and bodies."""

from __future__ import annotations

import gzip
import logging
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from domain.shared.clock import Clock, machine_clock
from domain.shared.error import InvalidInput
from sandbox import control
from sandbox.accounts import ACCOUNTS, Account, Gate
from sandbox.calls import Calls
from sandbox.clock import MovableClock
from sandbox.exchange import Exchange
from sandbox.faults import Fault, Faults
from sandbox.references import service as references
from sandbox.service import Answer, Service

log = logging.getLogger("sandbox")

DEFAULT_PORT = 8765
MAX_BODY = 256 * 1024
MAX_CONNECTIONS = 128
IDLE_SECONDS = 60.0
_ABORT = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: closing such a socket sends RST instead of FIN."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "sandbox"
    sys_version = ""
    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True
    server: _Http

    def do_POST(self) -> None:
        body = self._body()
        if body is None:
            return
        if self.path.startswith(control.PREFIX):
            self._reply(
                control.answer(self.server.owner.service, self.server.owner.clock, "POST", self.path, body)
            )
        else:
            self._reply(self.server.owner.service.answer(self.path, body))

    def do_GET(self) -> None:
        if self.path.startswith(references.PREFIX):
            self.server.owner.touched()
            self._reply(self.server.owner.references.answer(self.path, dict(self.headers)))
        else:
            self._without_body("GET")

    def do_DELETE(self) -> None:
        self._without_body("DELETE")

    def _without_body(self, method: str) -> None:
        self.server.owner.touched()
        self._reply(
            control.answer(self.server.owner.service, self.server.owner.clock, method, self.path, b"")
        )

    def _body(self) -> bytes | None:
        self.server.owner.touched()
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            self.close_connection = True
            self._reply(Answer(b"a Content-Length is needed\n", HTTPStatus.LENGTH_REQUIRED, "text/plain"))
            return None
        if int(length) > MAX_BODY:
            self.close_connection = True
            self._reply(Answer(b"the body is too large\n", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "text/plain"))
            return None
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True
            return None
        return body

    def _reply(self, answer: Answer) -> None:
        if answer.stall and self.server.owner.stopping.wait(answer.stall):
            self.close_connection = True
            return
        body, headers = answer.body, dict(answer.headers)
        if self.server.owner.gzip and "gzip" in self.headers.get("Accept-Encoding", ""):
            body, headers["Content-Encoding"] = gzip.compress(body, 1, mtime=0), "gzip"
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        # One write for head and body: two would make the client wait for a delayed acknowledgement.
        self._headers_buffer: list[bytes]
        self._headers_buffer.append(b"\r\n")
        self._headers_buffer.append(body[: len(body) // 2] if answer.reset else body)
        self.flush_headers()
        if answer.reset:
            self._abort()

    def _abort(self) -> None:
        self.close_connection = True
        # The first half must be on its way before the reset overtakes it.
        time.sleep(0.02)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
        self.server.owner.drop(self.connection)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        log.debug("%s %s", self.address_string(), format % args)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = MAX_CONNECTIONS
    owner: SandboxServer

    def __init__(self, address: tuple[str, int], owner: SandboxServer) -> None:
        self.owner = owner
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # HTTPServer would look its own name up, which can take seconds without a name server.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        host, self.server_port = self.socket.getsockname()[:2]
        self.server_address = (host, self.server_port)
        self.server_name = host

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.owner.admit(request):
            request.sendall(
                b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.owner.forget(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        # Clients hang up: not worth a line. Anything else is ours and worth all of them.
        error = sys.exc_info()[1]
        if isinstance(error, OSError):
            log.debug("%s went away: %s", client_address, error)
        else:
            log.error("request failed", exc_info=error)


class SandboxServer:
    """A running sandbox: `with SandboxServer() as server: server.url`.

    `clock` is the business clock; `machine_clock` rules the per-minute limits. Port 0 takes a free one.
    """

    def __init__(
        self,
        exchange: Exchange | None = None,
        *,
        clock: Clock = machine_clock,
        host: str = "127.0.0.1",
        port: int = 0,
        accounts: Iterable[Account] = ACCOUNTS,
        faults: Iterable[Fault] = (),
        machine_clock: Clock = machine_clock,
        gzip: bool = False,
    ) -> None:
        self.clock = MovableClock(clock)
        self.faults = Faults(faults)
        self.exchange = exchange or Exchange()
        self.service = Service(self.exchange, self.clock, Gate(accounts, machine_clock), self.faults)
        self.references = references.ReferenceService(self.clock, self.faults, self.service.calls)
        self.gzip = gzip
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._last_request = time.monotonic()
        self._thread: threading.Thread | None = None
        try:
            self._http = _Http((host, port), self)
        except OSError as error:
            raise InvalidInput(
                f"cannot listen on {host}:{port}: {error.strerror}",
                reason_code="port_in_use",
                remedy="stop the program that holds the port, or choose another with --port",
            ) from error

    @property
    def port(self) -> int:
        return self._http.server_port

    @property
    def url(self) -> str:
        return f"http://{self._http.server_name}:{self.port}"

    @property
    def calls(self) -> Calls:
        return self.service.calls

    @property
    def idle_seconds(self) -> float:
        """Seconds since the last request."""
        return time.monotonic() - self._last_request

    def start(self) -> None:
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, name="sandbox", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stops listening and hangs up on everybody. May be called twice."""
        if self.stopping.is_set():
            return
        self.stopping.set()
        if self._thread is not None:
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            _hang_up(connection)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # What the handlers tell us -----------------------------------------------------------------

    def touched(self) -> None:
        self._last_request = time.monotonic()

    def admit(self, connection: socket.socket) -> bool:
        with self._lock:
            if len(self._connections) >= MAX_CONNECTIONS:
                return False
            self._connections.add(connection)
            return True

    def forget(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)

    def drop(self, connection: socket.socket) -> None:
        """Closes at once, with whatever SO_LINGER says."""
        self.forget(connection)
        connection.close()


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError as error:
        # The client was quicker.
        log.debug("already closed: %s", error)

"""A server on a real socket that sends the answers of a test byte by byte, faults included."""

import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from typing import Any, Self

from resources.http.faults import Timeouts

SECRET = "f00dfacecafe0123456789abcdef0123456789abcdef0123"
PATIENT = Timeouts(connect=10, read=20, total=60)
HASTY = Timeouts(connect=10, read=0.3, total=0.6)
"""For servers that fall silent."""


@dataclass(frozen=True)
class Reply:
    """`sent` None sends everything; otherwise that many bytes of the body, then `then` happens."""

    body: bytes = b""
    status: str = "200 OK"
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: int | None = None
    then: str = "keep"  # keep, close, reset, stall, drip
    chunked: bool = False


@dataclass(frozen=True)
class Call:
    path: str
    headers: Message
    payload: dict[str, Any]


class WireServer:
    def __init__(self) -> None:
        self.answer: Callable[[Call], Reply] = lambda _: Reply()
        self.calls: list[Call] = []
        self.connections = 0
        self._over = threading.Event()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for connection in [self._listener, *self._open]:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in self._threads:
            thread.join(5)

    def finish_connections(self) -> bool:
        """Waits until every connection that was to be closed is closed; whether all are."""
        for thread in self._threads[1:]:
            thread.join(5)
        return not any(thread.is_alive() for thread in self._threads[1:])

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, ValueError), connection, connection.makefile("rb") as incoming:
            while line := incoming.readline():
                headers = message_from_bytes(b"".join(iter(incoming.readline, b"\r\n")))
                length = int(headers.get("Content-Length", 0))
                content = incoming.read(length)
                call = Call(line.split()[1].decode(), headers, json.loads(content) if content else {})
                self.calls.append(call)
                if not self._send(connection, self.answer(call)):
                    return

    def _send(self, connection: socket.socket, reply: Reply) -> bool:
        framing = (
            {"Transfer-Encoding": "chunked"} if reply.chunked else {"Content-Length": str(len(reply.body))}
        )
        lines = [f"HTTP/1.1 {reply.status}", *(f"{k}: {v}" for k, v in {**framing, **reply.headers}.items())]
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(reply.body), reply.body) if reply.chunked else reply.body
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body[: reply.sent])
        if reply.then == "stall":
            self._over.wait()
        elif reply.then == "drip":
            for byte in body[reply.sent :]:
                if self._over.wait(0.05):
                    break
                connection.sendall(bytes([byte]))
        elif reply.then == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return reply.then == "keep"

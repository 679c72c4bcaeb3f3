"""The HTTP API over a real socket, in a thread of the test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchestration.api.app import build_app
from orchestration.api.server import ApiServer
from orchestration.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from orchestration.api.watching import Hub


@contextmanager
def serving(settings: Settings) -> Iterator[tuple[str, Hub]]:
    """The address of the API, and what is watched there."""
    app = build_app(settings)
    with serving_app(app) as address:
        yield address, app.state.hub


@contextmanager
def serving_app(app: FastAPI) -> Iterator[str]:
    """The address of an application."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = ApiServer(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()

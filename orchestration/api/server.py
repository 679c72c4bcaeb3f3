"""The server of the HTTP API. Imported where it is started: uvicorn is a heavy import."""

from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI

KEPT_ALIVE_SECONDS = 30
"""Longer than clients keep an idle connection (httpx: 5): the server must not be the first to close it."""


class ApiServer(uvicorn.Server):
    """Ends its streams when it stops: otherwise it would wait for them."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        super().__init__(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,  # the application writes its own
                server_header=False,
                timeout_graceful_shutdown=5,
                timeout_keep_alive=KEPT_ALIVE_SECONDS,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.app.state.hub.stop()
        await super().shutdown(sockets)

"""A sandbox on a real socket, its clock stopped on a Wednesday evening."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from domain.shared.clock import stopped_at
from sandbox.endpoints import SHANGHAI
from sandbox.exchange import Exchange
from sandbox.server import SandboxServer

EVENING = datetime(2026, 11, 18, 20, tzinfo=SHANGHAI)

Ask = Callable[..., Any]


@pytest.fixture(scope="session")
def exchange() -> Exchange:
    return Exchange()


@pytest.fixture
def server(exchange: Exchange) -> Iterator[SandboxServer]:
    with SandboxServer(exchange, clock=stopped_at(EVENING)) as running:
        yield running


@pytest.fixture
def connection(server: SandboxServer) -> Iterator[http.client.HTTPConnection]:
    made = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    yield made
    made.close()


@pytest.fixture
def ask(connection: http.client.HTTPConnection) -> Ask:
    """Sends one call and returns the parsed answer."""

    def send(
        api: str, params: dict[str, Any] | None = None, fields: str = "", token: str = "sandbox-token"
    ) -> Any:
        body = {"api_name": api, "token": token, "params": params or {}, "fields": fields}
        connection.request("POST", "/", json.dumps(body))
        reply = connection.getresponse()
        assert reply.status == 200
        return json.loads(reply.read())

    return send

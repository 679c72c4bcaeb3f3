"""A Tushare client and the server on a real socket that it talks to."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from resources.http.faults import Timeouts
from resources.tushare.client import TushareClient
from resources.tushare.pace import Pacer
from tests.integration.resources.http.wire_server import HASTY, PATIENT, SECRET, Reply, WireServer


def rows_reply(fields: list[str], items: list[list[Any]], **data: Any) -> Reply:
    content = {"fields": fields, "items": items, **data}
    return Reply(json.dumps({"code": 0, "msg": None, "data": content}, ensure_ascii=False).encode())


def refusal_reply(code: Any, message: str) -> Reply:
    return Reply(json.dumps({"code": code, "msg": message, "data": None}, ensure_ascii=False).encode())


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


def client_of(server: WireServer, timeouts: Timeouts, pacer: Pacer | None = None) -> TushareClient:
    pacer = pacer or Pacer(None, per_minute=1)
    return TushareClient(
        url=f"{server.url}/dataapi", token=SECRET, points=2000, pacer=pacer, timeout=timeouts
    )


@pytest.fixture
def client(server: WireServer) -> Iterator[TushareClient]:
    with closing(client_of(server, PATIENT)) as client:
        yield client


@pytest.fixture
def hasty_client(server: WireServer) -> Iterator[TushareClient]:
    """For servers that fall silent: it waits 0.3 s for a byte and 0.6 s for an answer."""
    with closing(client_of(server, HASTY)) as client:
        yield client

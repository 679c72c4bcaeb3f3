"""The HTTP application on a real socket, over a real home."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
import uvicorn

from orchestration.api.app import build_app
from orchestration.services import open_ledger
from orchestration.settings import Settings
from resources.ledger.client import Ledger
from tests.settings import make_settings

TOKEN = "f00dfacecafe0123456789abcdef"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return make_settings(home=tmp_path / "home", source="sandbox", api_token=TOKEN)


@pytest.fixture
def ledger(settings: Settings) -> Iterator[Ledger]:
    ledger = open_ledger(settings, write=True)
    yield ledger
    ledger.close()


class Api:
    def __init__(self, address: str) -> None:
        self.address = address
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {TOKEN}"

    def get(self, path: str) -> requests.Response:
        return self.session.get(self.address + path, timeout=30)

    def post(self, path: str, body: bytes = b"", **given: str) -> requests.Response:
        return self.session.post(self.address + path, data=body, params=given, timeout=30)

    def upload(self, body: bytes, **given: str) -> requests.Response:
        return self.post("/carbon/uploads", body, **given)


@pytest.fixture
def api(settings: Settings) -> Iterator[Api]:
    with serving(settings) as api:
        yield api


@contextmanager
def serving(settings: Settings) -> Iterator[Api]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(build_app(settings), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    api = Api(f"http://127.0.0.1:{listener.getsockname()[1]}")
    yield api
    api.session.close()
    server.should_exit = True
    thread.join()
    listener.close()

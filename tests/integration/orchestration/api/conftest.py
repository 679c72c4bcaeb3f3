"""The HTTP application on a real socket, over a real home."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from orchestration.services import open_ledger
from orchestration.settings import Settings
from resources.ledger.client import Ledger
from tests.serving import serving as serve_of
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
    with serve_of(settings) as (address, _):
        api = Api(address)
        yield api
        api.session.close()

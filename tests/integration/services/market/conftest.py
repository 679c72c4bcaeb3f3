"""One app per test, copied to the one place it may stand: the catalog holds absolute paths."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.exchange import Exchange
from tests.databases import closed_afterwards
from tests.integration.services.market.market_app import PREPARED, MarketApp, restore


@pytest.fixture(scope="session")
def exchange() -> Exchange:
    return Exchange()


@pytest.fixture(scope="session")
def port() -> int:
    """One address for all tests: it is part of what a prepared app remembers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("market")


@pytest.fixture(scope="session")
def template(place: Path, exchange: Exchange, port: int) -> Path:
    """The home folder of an app that is whole on the evening of its last day."""
    with closed_afterwards(), pytest.MonkeyPatch.context() as patch:
        app = MarketApp(place / "home", exchange, port, patch)
        app.start_source()
        try:
            filled = app.run("market", "backfill", "--from", PREPARED[0], "--to", PREPARED[-1])
            assert filled.code == 0, filled.err
            looked = app.run("market", "daily")
            assert looked.code == 0, looked.err
        finally:
            app.stop_source()
    shutil.move(place / "home", place / "template")
    return place / "template"


@pytest.fixture
def empty_app(
    place: Path, exchange: Exchange, port: int, template: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MarketApp]:
    """Nothing fetched yet; the source is up."""
    restore(None, place / "home")
    app = MarketApp(place / "home", exchange, port, monkeypatch)
    app.start_source()
    with closed_afterwards():
        yield app
    app.stop_source()


@pytest.fixture
def app(empty_app: MarketApp, template: Path) -> MarketApp:
    """Whole on the evening of its last day, nothing due."""
    restore(template, empty_app.home)
    return empty_app

"""One house per test, copied to the one place it may stand: the catalog holds absolute paths."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.exchange import Exchange
from tests.databases import closed_afterwards
from tests.integration.market.house import PREPARED, House, restore


@pytest.fixture(scope="session")
def exchange() -> Exchange:
    return Exchange()


@pytest.fixture(scope="session")
def port() -> int:
    """One address for all tests: it is part of what a prepared house remembers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("market")


@pytest.fixture(scope="session")
def template(place: Path, exchange: Exchange, port: int) -> Path:
    """The home folder of a house that is whole on the evening of its last day."""
    with closed_afterwards(), pytest.MonkeyPatch.context() as patch:
        house = House(place / "home", exchange, port, patch)
        house.start_source()
        try:
            filled = house.run("market", "backfill", "--from", PREPARED[0], "--to", PREPARED[-1])
            assert filled.code == 0, filled.err
            looked = house.run("market", "daily")
            assert looked.code == 0, looked.err
        finally:
            house.stop_source()
    shutil.move(place / "home", place / "template")
    return place / "template"


@pytest.fixture
def empty_house(
    place: Path, exchange: Exchange, port: int, template: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[House]:
    """Nothing fetched yet; the source is up."""
    restore(None, place / "home")
    house = House(place / "home", exchange, port, monkeypatch)
    house.start_source()
    with closed_afterwards():
        yield house
    house.stop_source()


@pytest.fixture
def house(empty_house: House, template: Path) -> House:
    """Whole on the evening of its last day, nothing due."""
    restore(template, empty_house.home)
    return empty_house

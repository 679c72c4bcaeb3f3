"""A carbon app under test is empty, or a copy of one that was furnished once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from resources.ledger.client import Ledger
from services.carbon.store import CarbonStore
from tests.integration.services.carbon.carbon_app import CarbonApp, furnished_once, running


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("carbon") / "app"


@pytest.fixture(scope="session")
def furnished(place: Path) -> Path:
    return furnished_once(place, "furnished", CarbonApp.furnish)


@pytest.fixture
def empty_app(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CarbonApp]:
    with running(place, None):
        yield CarbonApp(place, monkeypatch)


@pytest.fixture
def app(place: Path, furnished: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CarbonApp]:
    """A year with its report; nothing is due."""
    with running(place, furnished):
        yield CarbonApp(place, monkeypatch)


@pytest.fixture
def open_store(open_ledger: Callable[[], Ledger]) -> Callable[[], CarbonStore]:
    """Opens further stores on the same database, as other processes would."""

    def open_one() -> CarbonStore:
        ledger = open_ledger()
        return CarbonStore(ledger.engine, ledger.clock)

    return open_one


@pytest.fixture
def store(ledger: Ledger, open_store: Callable[[], CarbonStore]) -> CarbonStore:
    return open_store()

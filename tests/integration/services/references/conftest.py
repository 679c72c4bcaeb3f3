"""The references under test: a lake of files, a ledger on each database, a source of the test's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.references.jobs import kinds
from domain.references.tables import TABLES
from resources.lake.client import Lake
from resources.ledger.client import Ledger
from services.references.service import ReferencesService, Rules
from tests.databases import closed_afterwards
from tests.integration.services.references.fake_source import FakeScraper
from tests.integration.services.references.references_app import ReferencesApp

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def lake_at(folder: Path) -> Lake:
    return Lake(
        catalog_url=f"sqlite:///{folder}/catalog.db",
        warehouse=f"file://{folder}/warehouse",
        home=folder,
        tables=TABLES,
    )


@pytest.fixture
def scraper() -> FakeScraper:
    return FakeScraper()


@pytest.fixture
def service(
    ledger: Ledger, scraper: FakeScraper, tmp_path: Path, open_ledger: Callable[[], Ledger]
) -> ReferencesService:
    opened = ledger.with_kinds(kinds(backoff=timedelta(0)))
    (tmp_path / "lake").mkdir()
    return ReferencesService(lake_at(tmp_path / "lake"), opened, {scraper.source: scraper}, rules=Rules())


@pytest.fixture
def app(tmp_path: Path) -> Iterator[ReferencesApp]:
    with closed_afterwards():
        yield ReferencesApp(tmp_path / "home", f"sqlite:///{tmp_path}/ledger.db", NOW)

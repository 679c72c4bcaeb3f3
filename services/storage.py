"""Opens the lake and the ledger of these settings. Every service, command and run opens them here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from services.settings import StorageSettings

if TYPE_CHECKING:
    from domain.shared.table import Table
    from domain.shared.work import Kind
    from resources.lake.client import Lake
    from resources.ledger.client import Ledger


def open_lake(
    settings: StorageSettings, tables: Iterable[Table], views: Mapping[str, str] | None = None
) -> Lake:
    from resources.lake.client import Lake

    return Lake(
        catalog_url=settings.catalog_url,
        warehouse=settings.warehouse,
        home=settings.home,
        tables=tables,
        views=views,
        memory_limit=settings.memory_limit,
        threads=settings.threads,
    )


def open_ledger(settings: StorageSettings, kinds: Iterable[Kind], *, write: bool = False) -> Ledger:
    """The ledger of these kinds of work; `write` brings its schema to this program's."""
    from resources.ledger.client import Ledger

    ledger = Ledger.open(settings.database_url, kinds=kinds, clock=settings.business_clock())
    if write:
        ledger.migrate()
    return ledger

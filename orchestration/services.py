"""Opens what a command needs, without Dagster: a look costs a fraction of a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from orchestration import registry
from orchestration.settings import Settings

if TYPE_CHECKING:
    from domain.shared.table import Table
    from domain.shared.work import Kind
    from resources.lake.client import Lake
    from resources.ledger.client import Ledger


def open_lake(
    settings: Settings, tables: Iterable[Table] | None = None, views: Mapping[str, str] | None = None
) -> Lake:
    """The lake with the tables of one domain; by default with those of all."""
    from resources.lake.client import Lake

    if tables is None:
        tables, views = registry.tables(settings), registry.views(settings)
    return Lake.open(
        catalog_url=settings.catalog_url,
        warehouse=settings.warehouse,
        home=settings.home,
        tables=tables,
        views=views,
        memory_limit=settings.memory_limit,
        threads=settings.threads,
    )


def open_ledger(settings: Settings, kinds: Iterable[Kind] | None = None, *, write: bool = False) -> Ledger:
    """The ledger with the kinds of work of one domain; by default with those of all.

    `write` makes the schema and stamps the source; a look does neither.
    """
    from resources.ledger.client import Ledger

    kinds = registry.kinds(settings) if kinds is None else kinds
    ledger = Ledger.open(settings.database_url, kinds=kinds, clock=settings.business_clock())
    if write:
        ledger.migrate()
        ledger.stamp_source(settings.source)
    return ledger

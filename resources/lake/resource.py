"""The lake as a Dagster resource."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from domain.shared.table import Table

if TYPE_CHECKING:
    from resources.lake.client import Lake


_OPENED: dict[tuple[object, ...], "Lake"] = {}


class LakeResource(dg.ConfigurableResource):
    """Iceberg tables under one warehouse, found through a SQL catalogue."""

    catalog_url: str
    warehouse: str
    home: str
    memory_limit: str = "1GB"
    threads: int = 2

    def open(self, tables: Sequence[Table], views: Mapping[str, str]) -> "Lake":
        from resources.lake.client import Lake

        def opened() -> "Lake":
            return Lake.open(
                catalog_url=self.catalog_url,
                warehouse=self.warehouse,
                home=Path(self.home),
                tables=tables,
                views=views,
                memory_limit=self.memory_limit,
                threads=self.threads,
            )

        if not self.catalog_url.startswith("postgresql"):
            # A file may be put back from a backup under a running daemon: nothing is kept open on it.
            return opened()
        # One per process: a sensor looks every few seconds, and a server's connections are few.
        names = tuple(table.name for table in tables)
        key = (self.catalog_url, self.warehouse, self.home, self.memory_limit, self.threads, names)
        if key not in _OPENED:
            _OPENED[key] = opened()
        return _OPENED[key]

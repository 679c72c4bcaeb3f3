"""The lake as a Dagster resource."""

from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

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

    def open(self) -> "Lake":
        from domain.registry import tables, views
        from resources.lake.client import Lake

        # One per process: a sensor looks every few seconds, and each lake has caches and connections.
        known = tables()
        names = tuple(table.name for table in known)
        key = (self.catalog_url, self.warehouse, self.home, self.memory_limit, self.threads, names)
        if key not in _OPENED:
            _OPENED[key] = Lake.open(
                catalog_url=self.catalog_url,
                warehouse=self.warehouse,
                home=Path(self.home),
                tables=known,
                views=views(),
                memory_limit=self.memory_limit,
                threads=self.threads,
            )
        return _OPENED[key]

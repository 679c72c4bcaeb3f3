"""The lake as a Dagster resource."""

from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

if TYPE_CHECKING:
    from resources.lake.client import Lake


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

        return Lake.open(
            catalog_url=self.catalog_url,
            warehouse=self.warehouse,
            home=Path(self.home),
            tables=tables(),
            views=views(),
            memory_limit=self.memory_limit,
            threads=self.threads,
        )

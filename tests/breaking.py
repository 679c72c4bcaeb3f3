"""Breaking a lake as `perennial sandbox break` does, in this process and in several ways at once."""

from __future__ import annotations

from pathlib import Path

from resources.lake.location import LakeLocation
from sandbox.lake import break_partition


def break_lake(home: Path, table: str, *words: str) -> None:
    """Break the lake of a home: a way of breaking and a partition, and so on."""
    catalog, warehouse = f"sqlite:///{home}/lake/catalog.db", f"file://{home}/lake/warehouse"
    properties = LakeLocation.of(catalog, warehouse, home).properties
    for how, partition in zip(words[::2], words[1::2], strict=True):
        break_partition(properties, table, how.removeprefix("--"), partition)

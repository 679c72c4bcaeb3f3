"""Is the warehouse still where its tables were made? Iceberg's files name each other by absolute address.

A home that was moved cannot be read, and one that was copied would read, write and tidy the files of the
original. The catalog's own addresses tell, at no cost beyond the look itself.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from resources.lake.error import MovedWarehouse
from resources.lake.pointer import Pointers
from resources.lake.store import Store


@dataclass(frozen=True)
class UnmovedPointers:
    """Pointers that lead into the warehouse we were given, or an error that says where they lead instead."""

    pointers: Pointers
    store: Store
    warehouse: str
    tables: Collection[str]
    """Ours. What another engine keeps in the same catalog may be anywhere."""

    def identity(self) -> str | None:
        return self.pointers.identity()

    def read(self) -> dict[str, str]:
        found = self.pointers.read()
        here = f"{self.warehouse}/"
        for name, location in found.items():
            if not location.startswith(here) and name in self.tables and not self._leads_here(location):
                raise self._moved(name, location)
        return found

    def _leads_here(self, location: str) -> bool:
        """Whether an address that is spelt differently means this warehouse all the same."""
        path, here = self.store.sql_path(location), self.store.sql_path(self.warehouse)
        if not path.startswith("/"):
            return path.startswith(f"{here}/")
        return any(_same(folder, here) for folder in Path(path).parents)

    def _moved(self, name: str, location: str) -> MovedWarehouse:
        folder = location.rsplit("/metadata/", 1)[0].removesuffix(f"/{name.replace('.', '/', 1)}")
        made_at, here = folder.removeprefix("file://"), self.warehouse.removeprefix("file://")
        back = f"move it back, or make {made_at} a link to it" if made_at.startswith("/") else "put it back"
        return MovedWarehouse(
            f"the warehouse was made at {made_at} and is now looked for at {here}; its files name each other "
            "by absolute address and can be used at the first place only",
            remedy=f"{back}; if only a setting was changed, set PERENNIAL_HOME back, or "
            f"PERENNIAL_WAREHOUSE={made_at}",
        )


def _same(one: Path, other: str) -> bool:
    """The same folder: also through a link or a mount."""
    with suppress(OSError):
        return one.samefile(other)
    return False

"""Whose warehouse is it? Of two catalogs over one, each would delete the other's files as left-overs.

A catalog has an identity, and the warehouse a mark that names it: made with the first write, compared before
this process's first write and before all maintenance. A warehouse without a mark is claimed only by a catalog
that has tables, or if no tables are there. Nothing tells a second catalog from a lost one that begins anew:
both are refused, and a person decides.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from domain.shared.error import PerennialError
from resources.lake.catalog import INIT_LOCK, SQLITE, Catalog
from resources.lake.error import ForeignWarehouse
from resources.lake.locks import Locks
from resources.lake.pointer import Pointers, SqlitePointers
from resources.lake.settings import Place
from resources.lake.store import Store

MARK = ".perennial-catalog.json"

_OWN_PLACE = (
    "give this environment a warehouse of its own (PERENNIAL_WAREHOUSE, or another PERENNIAL_HOME), or the "
    "catalogue that knows these files (PERENNIAL_CATALOG_URL, or else PERENNIAL_DATABASE_URL)"
)


@dataclass(frozen=True)
class Mark:
    """What the warehouse says of its owner. The addresses are for people; the identity decides."""

    identity: str
    catalog: str
    warehouse: str


@dataclass
class Ownership:
    place: Place
    store: Store
    pointers: Pointers
    catalog: Catalog
    locks: Locks
    _ensured: bool = False

    @property
    def _uri(self) -> str:
        return f"{self.place.warehouse}/{MARK}"

    def check(self) -> None:
        """Raise if the warehouse is not ours to write; changes nothing."""
        self.pointers.read()
        self._is_ours()

    def ensure(self) -> None:
        """Claim it once, before this process's first write."""
        if not self._ensured:
            self.claim()

    def claim(self) -> None:
        """Raise if the warehouse is another catalog's; mark it as ours if it is nobody's."""
        if not self._is_ours():
            self.catalog.open()
            with self.locks.lease(INIT_LOCK):
                # The identity first: after a crash between the two the next write goes on from there.
                self.catalog.identify()
                mark = Mark(self.pointers.identity() or "", self.catalog.address, self.place.warehouse)
                self.store.create(self._uri, orjson.dumps(asdict(mark), option=orjson.OPT_INDENT_2))
            self._is_ours()  # of two that claim it at once only one finds itself in the mark
        self._ensured = True

    def _is_ours(self) -> bool:
        """False if it is nobody's."""
        mark = self._mark()
        if mark is None:
            if self.pointers.read() or (found := self._any_table()) is None:
                return False
            # It may be the first table of another process of ours, which marked the warehouse before.
            if (mark := self._mark()) is None:
                raise self._foreign(f"holds tables that this catalogue does not know, such as {found}")
        # Read after the mark: whoever makes both makes the identity first.
        if mark.identity != self.pointers.identity():
            raise self._foreign(f"belongs to another catalogue, the one at {mark.catalog}")
        if self._is_a_copy(mark):
            raise ForeignWarehouse(
                f"the warehouse {self.place.warehouse} belongs to the catalogue {mark.catalog}, of which "
                f"{self.place.sqlite_path} is a copy",
                remedy="use the original (PERENNIAL_HOME, PERENNIAL_CATALOG_URL); if this one is to be "
                "kept, move the other out of the way",
            )
        return True

    def _mark(self) -> Mark | None:
        try:
            content = self.store.read(self._uri)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            read = orjson.loads(content)
            return Mark(str(read["identity"]), str(read["catalog"]), str(read["warehouse"]))
        except (ValueError, TypeError, KeyError) as error:
            raise ForeignWarehouse(
                f"whose warehouse {self.place.warehouse} is cannot be told: {self._uri} cannot be understood",
                remedy="restore this file from a backup; if no other environment uses the warehouse, delete "
                "the file and the next write makes it anew",
            ) from error

    def _any_table(self) -> str | None:
        files = self.store.list(self.place.warehouse)
        return next((f.uri for f in files if f.uri.endswith(".metadata.json")), None)

    def _is_a_copy(self, mark: Mark) -> bool:
        """Whether the catalog file that the mark names is still there, beside ours and with its identity."""
        if self.place.kind != "sqlite" or not mark.catalog.startswith(SQLITE):
            return False
        named = Path(mark.catalog.removeprefix(SQLITE))
        # Missing, in a folder that cannot be entered, or no database: nobody works with it.
        with suppress(OSError, PerennialError):
            other = not named.samefile(self.place.sqlite_path)
            return other and SqlitePointers(named).identity() == mark.identity
        return False

    def _foreign(self, how: str) -> ForeignWarehouse:
        last = (
            f"delete {self._uri}: the next to write owns the warehouse"
            if self.pointers.read()
            else "empty the warehouse: without its catalogue nobody can read it"
        )
        return ForeignWarehouse(
            f"the warehouse {self.place.warehouse} {how}",
            remedy=f"{_OWN_PLACE}; only if that one is lost for good, {last}",
        )

"""One table at one moment: its definition, stored schema and data files. All reading goes through a view."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from domain.shared.error import InvalidInput
from domain.shared.table import Table
from resources.lake.catalog_reader import CatalogReader
from resources.lake.error import MovedWarehouse, metadata_corrupt, metadata_missing
from resources.lake.file_index import FileEntry, FileIndex, FileList
from resources.lake.metadata import TableMetadata, added_columns, parse_metadata
from resources.objects.store import Store

_ATTEMPTS = 5
_METADATA_KEPT = 256
_NO_FILES = FileList(0, ())


@dataclass(frozen=True)
class View:
    table: Table
    metadata: TableMetadata | None = None
    listing: FileList = _NO_FILES

    @property
    def files(self) -> tuple[FileEntry, ...]:
        return self.listing.files

    @property
    def has_deletes(self) -> bool:
        return self.listing.has_deletes

    def holding(self, partitions: Sequence[str]) -> list[FileEntry]:
        """The files that may have rows of some partitions, each once."""
        return self.listing.holding(self.table, partitions)

    def reduced(self, files: Sequence[FileEntry]) -> View:
        """The same table with some of its files only."""
        return replace(self, listing=replace(self.listing, files=tuple(files)))


class Views:
    def __init__(self, catalog: CatalogReader, store: Store, warehouse: str, index: FileIndex) -> None:
        self._catalog = catalog
        self._store = store
        self._warehouse = warehouse
        self._index = index
        self._parsed: dict[str, TableMetadata] = {}

    def of(self, table: Table) -> View:
        return self.of_all([table])[table.name]

    def of_all(
        self, tables: list[Table], as_of: datetime | Mapping[str, int] | None = None
    ) -> dict[str, View]:
        """Views of several tables, their metadata locations read in one statement."""
        for _ in range(_ATTEMPTS):
            locations = self._catalog.metadata_locations()
            try:
                return {t.name: self._view(t, locations.get(t.name), as_of) for t in tables}
            except FileNotFoundError as error:
                missing = error  # newer commits have deleted the metadata file meanwhile: read again
        raise metadata_missing(str(missing.filename or missing))

    def _view(self, table: Table, location: str | None, as_of: datetime | Mapping[str, int] | None) -> View:
        if location is None:
            return View(table)
        metadata = self._metadata(table, location)
        if isinstance(as_of, datetime):
            snapshot = metadata.snapshot_at(as_of)
        elif as_of and table.name in as_of:
            snapshot = metadata.snapshot(as_of[table.name])
        else:
            snapshot = metadata.current_id
        if snapshot is None:
            return View(table, metadata)
        return View(table, metadata, self._index.get(table, location, snapshot))

    def _metadata(self, table: Table, location: str) -> TableMetadata:
        metadata = self._parsed.get(location)
        if metadata is None:
            self._check_warehouse(table, location)
            content = self._store.read(location)
            try:
                metadata = parse_metadata(table.name, location, content)
            except (ValueError, KeyError, StopIteration, EOFError) as error:
                raise metadata_corrupt(table.name, f"the metadata file {location}") from error
            if len(self._parsed) >= _METADATA_KEPT:
                self._parsed.clear()
            self._parsed[location] = metadata
        added_columns(table, metadata)  # refuses a definition that contradicts the stored table
        return metadata

    def _check_warehouse(self, table: Table, location: str) -> None:
        """Refuse tables of another warehouse: a copied home would write to the original's files."""
        here = self._warehouse
        if location.startswith(f"{here}/") or _real(location).startswith(f"{_real(here)}/"):
            return
        folder = location.rsplit("/metadata/", 1)[0].removesuffix(f"/{table.name.replace('.', '/', 1)}")
        made_at, here = folder.removeprefix("file://"), here.removeprefix("file://")
        raise MovedWarehouse(
            f"the warehouse was made at {made_at} and is now at {here}; its files name each other by "
            "absolute address and can be used at the first location only",
            remedy=f"move it back, or make {made_at} a link to it; if only a setting was changed, set "
            f"PERENNIAL_HOME back, or PERENNIAL_WAREHOUSE={made_at}",
        )


def _real(uri: str) -> str:
    """A location with its links resolved; S3 has two names for one scheme."""
    if uri.startswith("file://"):
        return os.path.realpath(uri.removeprefix("file://"))
    return uri.replace("s3a://", "s3://", 1)


def check_known(names: Mapping[str, Table], name: str) -> Table:
    if (table := names.get(name)) is None:
        raise InvalidInput(f"the lake has no table {name!r}", remedy=f"one of: {', '.join(sorted(names))}")
    return table

"""One table at one moment: its definition, stored schema and data files. All reading goes through a view."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from domain.shared.error import InfrastructureError, InvalidInput
from domain.shared.table import Table
from resources.lake.error import ONE_MOMENT, DataCorrupt, MovedWarehouse, metadata_corrupt
from resources.lake.file_index import FileEntry, FileIndex, FileList
from resources.lake.pointer import Pointers
from resources.lake.state import TableState, added_columns, parse_state
from resources.objects.store import Store

_LOOKS = 5
_STATES_KEPT = 256


@dataclass(frozen=True)
class View:
    table: Table
    state: TableState | None = None
    listing: FileList | None = None

    @property
    def files(self) -> tuple[FileEntry, ...]:
        return () if self.listing is None else self.listing.files

    def may_hold(self, partition: str) -> list[FileEntry]:
        """The files that may have rows of a partition."""
        return [] if self.listing is None else self.listing.may_hold(self.table, partition)

    def holding(self, partitions: Sequence[str]) -> View:
        """The same table, reduced to the files that may hold `partitions`."""
        if self.listing is None:
            return self
        files = self.listing.holding(self.table, partitions)
        return replace(self, listing=replace(self.listing, files=tuple(files)))


class Views:
    def __init__(self, pointers: Pointers, store: Store, warehouse: str, index: FileIndex) -> None:
        self._pointers = pointers
        self._store = store
        self._warehouse = warehouse
        self._index = index
        self._states: OrderedDict[str, TableState] = OrderedDict()

    def of(self, table: Table, as_of: datetime | int | None = None) -> View:
        return self.of_all([table], {} if as_of is None else {table.name: as_of})[table.name]

    def of_all(
        self, tables: list[Table], as_of: datetime | Mapping[str, datetime | int] | None = None
    ) -> dict[str, View]:
        """Views of several tables, their pointers read in one statement."""
        for _ in range(_LOOKS):
            pointers = self._pointers.read()
            try:
                return {t.name: self._view(t, pointers.get(t.name), _moment(as_of, t.name)) for t in tables}
            except FileNotFoundError as error:
                missing = error  # commits have overtaken us and tidied the metadata file away: look again
        raise InfrastructureError(
            f"the lake's metadata file {missing.filename or missing} is missing",
            reason_code="lake_metadata_missing",
            remedy=ONE_MOMENT,
        )

    @contextmanager
    def kept(self, views: Iterable[View]) -> Iterator[None]:
        """Files of a snapshot that maintenance let go while it was read are no damage."""
        try:
            yield
        except DataCorrupt as error:
            for view in views:
                if view.table.name == error.table and view.listing is not None:
                    self.of(view.table, view.listing.snapshot_id)  # says so if it is gone
            raise

    def _view(self, table: Table, location: str | None, as_of: datetime | int | None) -> View:
        if location is None:
            return View(table)
        state = self._state(table, location)
        if as_of is None:
            snapshot = state.current_id
        elif isinstance(as_of, datetime):
            snapshot = state.at(as_of)
        else:
            snapshot = state.known(as_of)
        if snapshot is None:
            return View(table, state)
        return View(table, state, self._index.get(table.name, location, snapshot))

    def _state(self, table: Table, location: str) -> TableState:
        state = self._states.get(location)
        if state is None:
            self._check_warehouse(table, location)
            content = self._store.read(location)
            try:
                state = parse_state(table.name, location, content)
            except (ValueError, KeyError, StopIteration, EOFError) as error:
                raise metadata_corrupt(table.name, f"the metadata file {location}") from error
            self._states[location] = state
            while len(self._states) > _STATES_KEPT:
                self._states.popitem(last=False)
        added_columns(
            table, state
        )  # a definition that contradicts what is stored is an error for readers too
        return state

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


def _moment(as_of: datetime | Mapping[str, datetime | int] | None, name: str) -> datetime | int | None:
    return as_of.get(name) if isinstance(as_of, Mapping) else as_of


def check_known(names: Mapping[str, Table], name: str) -> Table:
    if (table := names.get(name)) is None:
        raise InvalidInput(f"the lake has no table {name!r}", remedy=f"one of: {', '.join(sorted(names))}")
    return table

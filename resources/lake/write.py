"""Changing a table: a read, a computed change and one commit under the table's lock."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from domain.shared.error import InvalidInput
from domain.shared.table import Table, Version
from resources.lake import iceberg_commit
from resources.lake.catalog import Catalog, catalog_errors
from resources.lake.content import Content, Rows, WrittenFiles
from resources.lake.engine import Engine, quoted
from resources.lake.error import CommitConflict, DataCorrupt, ForeignWarehouse, storage_errors
from resources.lake.file_index import FileEntry, FileIndex, FileList
from resources.lake.frame import check_partitions, conform, partitions_of
from resources.lake.iceberg_read import file_entry
from resources.lake.layout import group_of, sql_filter
from resources.lake.locks import Locks
from resources.lake.metadata import added_columns
from resources.lake.partition_writer import WrittenPartition
from resources.lake.versions import VersionReader
from resources.lake.view import View, Views

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable

_ATTEMPTS = 10

log = logging.getLogger(__name__)

Guard = Callable[[], None]


@dataclass(frozen=True)
class Commit:
    """What a write did. Identical content makes no snapshot: then `changed` is False."""

    snapshot_id: int | None
    parent_id: int | None
    versions: dict[str, Version]
    changed: bool


@dataclass(frozen=True)
class Writer:
    catalog: Catalog
    engine: Engine
    views: Views
    index: FileIndex
    versions: VersionReader
    locks: Locks

    def replace(
        self,
        table: Table,
        partitions: Sequence[str],
        data: pa.Table,
        *,
        allow_empty: bool,
        guard: Guard | None,
    ) -> Commit:
        frame = conform(table, data)
        wanted = tuple(sorted(set(partitions)))
        # Once, before the lock: it depends on nothing that is stored.
        rows = Rows.of(table, wanted, frame)
        check_partitions(table, rows.made, wanted)
        if not allow_empty:
            _refuse_empty(table, wanted, rows.made)
        return self._change(table, lambda _: rows, guard)

    def merge(self, table: Table, data: pa.Table, guard: Guard | None) -> Commit:
        if not set(table.partition_columns) <= set(table.key):
            raise InvalidInput(
                f"{table.name}: rows cannot be merged where the key does not name the partition"
            )
        frame = conform(table, data)
        _refuse_empty(table, (), partitions_of(table, frame))
        return self._change(table, lambda view: self._merged(view, frame), guard)

    def put(self, table: Table, written: Sequence[WrittenPartition], guard: Guard | None) -> Commit:
        """Make written files the whole content of their partitions.

        Those of partitions that have this version already are deleted; maintenance deletes those of a change
        that failed.
        """
        content = WrittenFiles(written)
        commit = self._change(table, lambda _: content, guard)
        for file in written:
            if file.path not in content.used:
                self.engine.store.delete(file.path)
        return commit

    def ready(self, table: Table) -> View:
        """The table, created or given its new columns first, for a writer of files before a commit."""
        view = self.views.of(table)
        if view.metadata is None or added_columns(table, view.metadata):
            with storage_errors(table.name), self.locks.lease(table.name), catalog_errors(table.name):
                self._stored(self.views.of(table))
            view = self.views.of(table)
        return view

    def rewrite(self, view: View, frame: pa.Table, files: Sequence[FileEntry]) -> None:
        """Put the rows of some files into new ones. The lock is held."""
        with catalog_errors(view.table.name):
            self._swap(view, Rows((), frame.slice(0, 0), {}), frame, files, None)

    def _merged(self, view: View, frame: pa.Table) -> Rows:
        """The rows of the touched partitions after the incoming rows replaced those of equal keys."""
        table = view.table
        touched = partitions_of(table, frame)
        files = view.holding(touched)
        stored = self.engine.read(view, files, sql_filter(table, touched))
        same = " AND ".join(f"s.{quoted(k)} IS NOT DISTINCT FROM i.{quoted(k)}" for k in table.key)
        with self.engine.connect() as connection:
            connection.register("stored", stored)
            connection.register("incoming", frame)
            query = f"SELECT * FROM stored AS s ANTI JOIN incoming AS i ON {same}"
            kept = connection.sql(query).to_arrow_table()
        return Rows.of(table, tuple(touched), pa.concat_tables([kept.cast(frame.schema), frame]))

    def _change(self, table: Table, content_of: Callable[[View], Content], guard: Guard | None) -> Commit:
        with storage_errors(table.name):
            iceberg_commit.import_iceberg()
            with self.locks.lease(table.name):
                for _ in range(_ATTEMPTS):
                    view = self.views.of(table)
                    try:
                        return self._apply(view, content_of(view), guard)
                    except CommitConflict as error:
                        conflict = error  # a writer that knows no locks (Trino) came first: compute anew
                raise conflict

    def _apply(self, view: View, content: Content, guard: Guard | None) -> Commit:
        table, wanted = view.table, dict(content.versions)
        stored = self.versions.read_versions(view, sorted(wanted))
        current = None if view.metadata is None else view.metadata.current
        before = None if current is None else current.id
        if wanted == stored:
            return Commit(before, None if current is None else current.parent_id, wanted, False)
        replaced = view.holding(list(wanted))
        kept, corrupt = self._other_rows(view, replaced, wanted)
        if corrupt:
            _warn_lost(table, corrupt, wanted)
        with catalog_errors(table.name):
            snapshot_id = self._swap(view, content, kept, replaced, guard)
        self.versions.remember(self.views.of(table), wanted)
        return Commit(snapshot_id, before, wanted, True)

    def _other_rows(
        self, view: View, replaced: Sequence[FileEntry], partitions: Collection[str]
    ) -> tuple[pa.Table, list[FileEntry]]:
        """Return the rows to keep of the replaced files, and the corrupt files, whose rows are lost."""
        only = set(partitions)
        shared = [f for f in replaced if not set(f.certain_partitions(view.table) or ("?",)) <= only]
        where = sql_filter(view.table, partitions, negate=True)
        try:
            return self.engine.read(view, shared, where), []
        except DataCorrupt as error:
            corrupt = [f for f in shared if f.path in set(error.files)]
            intact = [f for f in shared if f not in corrupt]
            return self.engine.read(view, intact, where), corrupt

    def _stored(self, view: View) -> IcebergTable:
        """The Iceberg table as the view saw it, created or given its new columns first."""
        table = view.table
        if view.metadata is None:
            self._refuse_foreign_files(table)
            return self.catalog.create(table)
        stored = self.catalog.load(table.name)
        if stored.metadata_location != view.metadata.location:
            raise CommitConflict(f"{table.name}: changed by another writer")
        if added := added_columns(table, view.metadata):
            return self.catalog.add_columns(stored, table, added)
        return stored

    def _refuse_foreign_files(self, table: Table) -> None:
        """A new catalogue over an old warehouse would delete its files as orphans within a day."""
        location = self.catalog.location(table)
        if (found := next(iter(self.engine.store.list(f"{location}/data")), None)) is not None:
            raise ForeignWarehouse(
                f"{table.name}: {location} holds data files that this catalogue does not know, such as "
                f"{found.uri.rpartition('/')[2]}; nothing was written",
                remedy="use the catalogue of this warehouse (restore it from a backup, or set "
                "PERENNIAL_CATALOG_URL), or give this environment a warehouse of its own "
                "(PERENNIAL_WAREHOUSE); if that catalogue is lost for good, delete the warehouse",
            )

    def _swap(
        self,
        view: View,
        content: Content,
        kept: pa.Table,
        replaced: Sequence[FileEntry],
        guard: Guard | None,
    ) -> int:
        """Write the content and drop the replaced files in one snapshot on top of the view's."""
        stored = self._stored(view)
        drop = iceberg_commit.find_data_files(stored, [f.path for f in replaced])
        added = content.write(stored, view.table, kept)
        try:
            if guard is not None:
                guard()
            snapshot_id = iceberg_commit.swap_files(stored, add=added, drop=drop)
        except CommitConflict:  # surely not committed; any other failure may hide a commit
            iceberg_commit.delete_data_files(stored, [f for f in added if f.file_path not in content.used])
            raise
        if not view.has_deletes:  # else read anew: they may be spent
            gone = {f.path for f in replaced}
            kept_files = [f for f in view.files if f.path not in gone]
            days = {*partitions_of(view.table, kept), *(p for p, v in content.versions.items() if v.rows)}
            fresh = _with_days(view.table, [file_entry(view.table, stored, f) for f in added], days)
            self.index.put(view.table, FileList(snapshot_id, (*kept_files, *fresh)))
        return snapshot_id


def _with_days(table: Table, files: Sequence[FileEntry], days: Collection[str]) -> list[FileEntry]:
    """New files with the days in them, where a month has one file only: then they are known exactly."""
    if table.partition_kind != "day":
        return list(files)
    months = Counter(f.group for f in files)
    held = {f.group: tuple(sorted(d for d in days if group_of(table, d) == f.group)) for f in files}
    return [replace(f, days=held[f.group] or None) if months[f.group] == 1 else f for f in files]


def _refuse_empty(table: Table, partitions: Sequence[str], present: Collection[str]) -> None:
    missing = [p for p in partitions if p not in present]
    if missing or not present:
        named = f" {', '.join(missing[:5])}" if missing else ""
        raise InvalidInput(
            f"{table.name}: no rows for{named or ' anything'}: an empty frame would delete what is there",
            reason_code="empty_frame",
            remedy="pass allow_empty if the partition is to be emptied",
        )


def _warn_lost(table: Table, corrupt: Sequence[FileEntry], written: Collection[str]) -> None:
    lost = sorted({p for f in corrupt for p in f.possible_partitions(table)} - set(written))
    log.warning(
        "%s: dropped %d corrupt data file(s); to be made again, as far as they were there: %s",
        table.name,
        len(corrupt),
        ", ".join(lost) or "none",
    )

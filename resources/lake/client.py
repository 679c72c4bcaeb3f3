"""The lake: Iceberg tables that many processes read and write, behind one narrow class.

Readers need no lock and no pyiceberg; writers hold one lock per table and commit one snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, Unpack

import pyarrow as pa

from domain.shared.error import InvalidInput
from domain.shared.table import Table, Version
from resources.lake.attach import attach
from resources.lake.catalog import Catalog
from resources.lake.catalog_reader import catalog_reader
from resources.lake.engine import Engine
from resources.lake.file_index import FileIndex
from resources.lake.iceberg_read import read_file_list
from resources.lake.layout import check_table
from resources.lake.location import CATALOG_NAME, LakeLocation
from resources.lake.locks import table_locks
from resources.lake.maintenance import Maintenance, MaintenanceReport, Upkeep
from resources.lake.partition_writer import PartitionWriter, WrittenPartition, partition_writer
from resources.lake.query import How, Query
from resources.lake.version_cache import VersionCache
from resources.lake.versions import VersionReader
from resources.lake.view import Views, check_known
from resources.lake.write import Commit, Guard, Writer
from resources.objects.store import store_for

Answer = TypeVar("Answer")
__all__ = ["CATALOG_NAME", "Commit", "Lake", "MaintenanceReport"]


class Lake:
    """Safe to share between threads; every process opens its own."""

    def __init__(
        self,
        *,
        catalog_url: str,
        warehouse: str,
        home: Path,
        tables: Iterable[Table],
        views: Mapping[str, str] | None = None,
        memory_limit: str = "1GB",
        threads: int = 2,
    ) -> None:
        """A lake at these addresses. Nothing is read, created or connected to before it is used.

        `views` name SELECTs over the tables, for readers of `sql`. `home` holds lock files and caches. The
        catalog is `sqlite:////path` or `postgresql://…`, the warehouse `file:///path`, a plain absolute path
        or `s3://bucket/path`.
        """
        where = LakeLocation.of(catalog_url, warehouse, home)
        self.tables: dict[str, Table] = {}
        for table in tables:
            check_table(table)
            if table.name in self.tables:
                raise InvalidInput(f"two definitions of the table {table.name}")
            self.tables[table.name] = table
        store, locks = store_for(where.warehouse), table_locks(where)
        cache = VersionCache(where.caches / "versions")
        index = FileIndex(where.caches / "files", read_file_list)
        self._engine = Engine(store, where.warehouse, memory_limit, threads, cache.forget)
        self._catalog = catalog_reader(where)
        self._views = Views(self._catalog, store, where.warehouse, index)
        self._versions = VersionReader(self._engine, cache, index)
        self._writer = Writer(Catalog(where, locks), self._engine, self._views, index, self._versions, locks)
        self._query = Query(self._engine, self._views, self.tables, dict(views or {}))
        self._maintenance = Maintenance(self._writer)

    # Writing. `guard` is called under the table's lock just before the commit and stops it by raising.

    def replace(
        self,
        table: str,
        partitions: str | Sequence[str],
        data: pa.Table,
        *,
        allow_empty: bool = False,
        guard: Guard | None = None,
    ) -> Commit:
        """Make these rows the whole content of one partition or many, in one snapshot.

        Partitions without rows are emptied only if `allow_empty`.
        """
        wanted = [partitions] if isinstance(partitions, str) else partitions
        return self._writer.replace(self._table(table), wanted, data, allow_empty=allow_empty, guard=guard)

    def merge(self, table: str, data: pa.Table, *, guard: Guard | None = None) -> Commit:
        """Insert rows; they replace rows with the same key."""
        return self._writer.merge(self._table(table), data, guard)

    def partition_writer(
        self, table: str, partition: str, *, source: str, name: str
    ) -> AbstractContextManager[PartitionWriter]:
        """Write a partition's next file by SQL over the same partition of `source`, the relation `name`.

        What was written is deleted if the block raises.
        """
        target, view = self._writer.ready(self._table(table)), self._views.of(self._table(source))
        return partition_writer(self._engine, view, name, target, partition)

    def put(self, table: str, written: Sequence[WrittenPartition], *, guard: Guard | None = None) -> Commit:
        """Make written files the whole content of their partitions, in one snapshot."""
        return self._writer.put(self._table(table), written, guard)

    def await_writer(self, table: str) -> None:
        """Return when no writer is between the guard and the end of a commit that began before."""
        with self._writer.locks.lease(self._table(table).name):
            pass

    # Reading

    def sql(self, query: str, **how: Unpack[How]) -> pa.Table:
        """The result of one reading statement over all tables and the `extra` relations.

        A person may have typed it: it runs on a locked database, and reaches the tables' files only.
        """
        return self._query.run(query, how, typed=True, read=_arrow)

    def stream(
        self, query: str, write: Callable[[pa.RecordBatchReader], Answer], **how: Unpack[How]
    ) -> Answer:
        """As `sql`; what `write` makes of the result, of which it reads one batch after the other."""
        return self._query.run(query, how, typed=True, read=lambda found: write(found.to_arrow_reader()))

    def query(self, query: str, **how: Unpack[How]) -> pa.Table:
        """As `sql`, for statements of our own code, without the cost of a locked database."""
        return self._query.run(query, how, typed=False, read=_arrow)

    def attach(self, path: Path, now: datetime) -> int:
        """Write a DuckDB file with a view of each table as it is now; how many there are."""
        views = self._views.of_all(list(self.tables.values()))
        return attach(path, views, self._query.computed, self._engine, now)

    # Observing

    def version(self, table: str, partition: str) -> Version:
        return self.versions(table, [partition])[partition]

    def versions(self, table: str, partitions: Sequence[str]) -> dict[str, Version]:
        """What each partition holds now: ABSENT where nothing is, `corrupt` where its files do not decode or
        are lost, `unavailable` where their bytes cannot be read now."""
        return self._versions.versions(self._views.of(self._table(table)), partitions)

    def holdings(
        self, partitions: Mapping[str, Iterable[str]], *, and_present: bool = False
    ) -> dict[str, dict[str, Version]]:
        """The `versions` of partitions of several tables at one moment; with `and_present` also of all others
        that have rows."""
        views = self._views.of_all([self._table(name) for name in partitions])
        found = {}
        for name, named in partitions.items():
            present = self._versions.partitions(views[name]) if and_present else ()
            found[name] = self._versions.versions(views[name], sorted({*named, *present}))
        return found

    def partitions(self, table: str) -> list[str]:
        """The partitions that have rows, sorted."""
        return self._versions.partitions(self._views.of(self._table(table)))

    def marks(self, tables: Iterable[str]) -> tuple[str | None, ...]:
        """What every commit to a table changes: the names of their metadata files, in one statement."""
        locations = self._catalog.metadata_locations()
        return tuple(locations.get(self._table(name).name) for name in tables)

    def has_lost_files(self, tables: Iterable[str]) -> bool:
        """Whether a data file is gone or has another size, as far as can be known without a request."""
        views = self._views.of_all([self._table(name) for name in tables])
        store = self._engine.store
        return not all(store.has_size(f.path, f.size) for view in views.values() for f in view.files)

    def maintain(self, table: str, **how: Unpack[Upkeep]) -> MaintenanceReport:
        """Compact one table, expire its snapshots, delete its orphans."""
        return self._maintenance.run(self._table(table), how)

    def _table(self, name: str) -> Table:
        return check_known(self.tables, name)


def _arrow(relation: Any) -> pa.Table:
    return relation.to_arrow_table()

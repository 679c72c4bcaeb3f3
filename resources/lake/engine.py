"""DuckDB over the data files of one snapshot: connections, relations, and reads that name corrupt files."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from domain.shared.table import Table
from resources.lake.damage import READ_ERRORS, faults_of, is_of_statement, is_storage_error, query_error
from resources.lake.error import DataCorrupt, DataUnavailable
from resources.lake.file_index import FileEntry
from resources.lake.iceberg_read import read_with_deletes
from resources.lake.layout import iceberg_type
from resources.lake.metadata import schema_map
from resources.lake.view import View
from resources.objects.store import Store

_KEPT = 4
"""Idle databases a process keeps: as many as it has threads at the lake."""


@dataclass(frozen=True)
class Engine:
    """How DuckDB is set up here, and its databases in memory."""

    store: Store
    warehouse: str
    memory_limit: str
    threads: int
    forget: Callable[[Table, Sequence[str]], None] = field(default=lambda *_: None, compare=False)
    """Called with partitions whose files turned out to be corrupt."""
    _idle: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []), repr=False, compare=False)

    def __post_init__(self) -> None:
        weakref.finalize(self, _close_all, self._idle)

    @contextmanager
    def connect(self, *, locked: bool = False) -> Iterator[Any]:
        """A connection alone on its database; `locked` for statements that people type.

        A locked database reaches the warehouse's files only, and its settings are fixed. Opening a database
        costs many times what most statements do, so it is used again, unless something failed on it: some
        corrupt files leave DuckDB's whole instance unusable. What is not temporary must be rolled back.
        """
        idle = self._idle[locked]
        try:
            database = idle.pop()
        except IndexError:
            database = self._open(locked)
        try:
            with closing(database.cursor()) as connection:
                yield connection
        except BaseException:
            database.close()
            raise
        if len(idle) < _KEPT:
            idle.append(database)
        else:
            database.close()

    def _open(self, locked: bool) -> Any:
        config = {
            "memory_limit": self.memory_limit,
            "threads": self.threads,
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            # A table name in SQL never means a variable of the calling program.
            "python_enable_replacements": "false",
            # What a file holds now counts, not what it held at the last statement.
            "enable_external_file_cache": "false",
        }
        database = duckdb.connect(":memory:", config=config)
        self.store.register_with(database)
        statements = ["SET GLOBAL TimeZone = 'UTC'"]
        if locked:
            folder = text_literal(self.store.sql_path(self.warehouse).rstrip("/") + "/")
            statements += [
                f"SET allowed_directories = [{folder}]",
                "SET enable_external_access = false",
                "SET lock_configuration = true",
            ]
        for statement in statements:
            database.execute(statement).fetchall()
        return database

    def relation(self, connection: Any, view: View) -> str:
        """A SELECT over a view's data files with exactly the table's columns."""
        stored = {f.name for f in view.metadata.fields} if view.metadata is not None else set()
        columns = ", ".join(_column(view.table, n, n in stored) for n in view.table.schema.names)
        if view.metadata is None or not view.files:
            return empty_relation(view.table)
        if view.has_deletes:
            name = f"deleted_rows_of_{view.table.namespace}_{view.table.table}"
            paths = {f.path for f in view.files}
            rows = read_with_deletes(view.metadata.location, view.listing.snapshot_id, paths)
            connection.register(name, rows)
            return f"SELECT {columns} FROM {name}"
        files = ", ".join(text_literal(self.store.sql_path(f.path)) for f in view.files)
        # By field ids only where names may differ: DuckDB then knows no row counts, and orders joins badly.
        schema = f", schema = {schema_map(view.table, view.metadata)}" if view.metadata.evolved else ""
        return f"SELECT {columns} FROM read_parquet([{files}]{schema}, hive_partitioning = false)"

    def read(self, view: View, files: Sequence[FileEntry], where: str = "true") -> pa.Table:
        """Rows of some files; raises DataCorrupt or DataUnavailable naming those that cannot be read."""
        if not files:
            return in_own_types(view.table, view.table.schema.empty_table())
        view = view.reduced(files)
        with self.connect() as connection, self.explained(view):
            query = f"SELECT * FROM ({self.relation(connection, view)}) WHERE {where}"
            return in_own_types(view.table, connection.sql(query).to_arrow_table())

    @contextmanager
    def explained(self, *views: View, typed: bool = False) -> Iterator[None]:
        """Turn an error while reading into one that names the fault of the files, if they have any.

        A `typed` statement may be wrong itself: for that no files are judged, which means to read them whole.
        """
        try:
            yield
        except READ_ERRORS as error:
            for view in views if not (typed and is_of_statement(error)) else ():
                self._raise_faults(view, error)
            if isinstance(error, duckdb.Error) or is_storage_error(error):
                raise query_error(error) from error
            raise

    def _raise_faults(self, view: View, error: Exception) -> None:
        """Raise the fault of a view's files, if they have any; forget the versions of corrupt partitions."""
        faults = faults_of(self.store, view.files)
        if unavailable := next((v.unavailable for v in faults.values() if v.unavailable), ""):
            raise DataUnavailable(unavailable) from error
        if corrupt := [f for f in view.files if f.path in faults]:
            days = sorted({p for f in corrupt for p in f.possible_partitions(view.table)})
            self.forget(view.table, days)
            raise DataCorrupt(view.table.name, days, [f.path for f in corrupt]) from error


def _close_all(idle: tuple[list[Any], ...]) -> None:
    for databases in idle:
        while databases:
            databases.pop().close()


def empty_relation(table: Table) -> str:
    return f"SELECT {', '.join(_column(table, n, False) for n in table.schema.names)} WHERE false"


def in_own_types(table: Table, rows: pa.Table) -> pa.Table:
    own = map(table.schema.field, rows.column_names)
    return rows.cast(pa.schema([pa.field(f.name, f.type, f.nullable) for f in own]))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def identifier(name: str) -> str:
    """Return the name of a table with its namespace, as SQL writes it."""
    return ".".join(map(quoted, name.split(".", 1)))


def text_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _column(table: Table, name: str, stored: bool) -> str:
    if stored:
        return quoted(name)
    return f"CAST(NULL AS {iceberg_type(table.name, name, table.schema.field(name).type)}) AS {quoted(name)}"

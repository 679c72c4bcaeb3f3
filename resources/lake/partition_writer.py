"""Calculations that DuckDB reads, runs and writes: the rows never pass through Python.

A statement over the rows of one partition is written as the next file of a partition of another table, and
another statement sums up what that file holds. `Lake.put` makes the file part of the table.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus

import duckdb
import pyarrow as pa

from domain.shared import compute
from domain.shared.hashing import digest
from domain.shared.table import ABSENT, Table, Version
from resources.lake.catalog import row_group_size
from resources.lake.engine import Engine, quoted, text_literal
from resources.lake.error import storage_errors, write_error
from resources.lake.layout import parse_partition, sql_filter
from resources.lake.view import View

_OPTIONS = "FORMAT parquet, PARQUET_VERSION V2, COMPRESSION zstd, COMPRESSION_LEVEL 1, USE_TMP_FILE false"
_JOIN_OPTIMIZERS = "join_order,build_side_probe_side"


@dataclass(frozen=True)
class WrittenPartition:
    """The next content of a partition, in a file that no snapshot refers to yet."""

    partition: str
    path: str
    version: Version
    sums: pa.Table
    """The result of the table's `sums` over the rows."""

    @property
    def num_rows(self) -> int:
        return self.version.rows


@dataclass(frozen=True)
class PartitionWriter:
    engine: Engine
    connection: Any
    source: View
    target: View
    partition: str
    paths: list[str] = field(default_factory=list)
    """Of the files that were written."""

    def query(self, sql: str) -> pa.Table:
        """The result of a statement over the source and the registered relations."""
        with self.engine.explained(self.source):
            found: pa.Table = self.connection.sql(sql).to_arrow_table()
            return found

    def register(self, name: str, table: pa.Table) -> None:
        """Add a relation of few rows. Its dictionary columns become ENUMs."""
        compute.register(self.connection, name, table)

    def write(self, rows: str) -> WrittenPartition:
        """Write what a SELECT returns as the partition's next file."""
        path, store = self._new_path(), self.engine.store
        with storage_errors(self.target.table.name):
            store.make_folder(path)
        self.paths.append(path)
        self._copy(rows, path)
        file = text_literal(store.sql_path(path))
        written = f"SELECT * FROM read_parquet({file}, hive_partitioning = false)"
        version, sums = _version(self.query, written, self.target.table)
        return WrittenPartition(self.partition, path, version, sums)

    def _copy(self, rows: str, path: str) -> None:
        assert self.target.metadata is not None  # noqa: S101
        table = self.target.table
        columns = ", ".join(quoted(name) for name in table.schema.names)
        ids = ", ".join(f"{quoted(f.name)}: {f.id}" for f in self.target.metadata.fields)
        options = f"{_OPTIONS}, ROW_GROUP_SIZE {row_group_size(table)}, FIELD_IDS {{{ids}}}"
        file = text_literal(self.engine.store.sql_path(path))
        try:
            self.connection.execute(f"COPY (SELECT {columns} FROM ({rows})) TO {file} ({options})").fetchall()
        except duckdb.Error as error:
            if (refused := write_error(table.name, path, error)) is not None:
                raise refused from error
            raise

    def _new_path(self) -> str:
        assert self.target.metadata is not None  # noqa: S101
        table = self.target.table
        values = zip(table.partition_columns, parse_partition(table, self.partition), strict=True)
        folder = "/".join(f"{name}={quote_plus(str(value))}" for name, value in values)
        root = self.target.metadata.location.rsplit("/metadata/", 1)[0]
        return f"{root}/data/{folder}/{uuid.uuid4()}.parquet"


@contextmanager
def partition_writer(
    engine: Engine, source: View, name: str, target: View, partition: str
) -> Iterator[PartitionWriter]:
    """A writer of a partition of `target`, with the source's partition of the same key as the relation
    `name`."""
    view = source.reduced(source.holding([partition]))
    with engine.connect() as connection, engine.explained(view):
        rows = _rows(engine, connection, view, partition)
        connection.execute(f"CREATE TEMP VIEW {name} AS {rows}").fetchall()
        # Of files read by Iceberg's field ids DuckDB does not know the row count, and would search them
        # for each registered row: twice the work. So relations are joined as written, the largest first.
        connection.execute(f"SET disabled_optimizers = '{_JOIN_OPTIMIZERS}'").fetchall()
        writer = PartitionWriter(engine, connection, view, target, partition)
        try:
            yield writer
        except BaseException:
            for path in writer.paths:
                with suppress(OSError):  # maintenance deletes what is left
                    engine.store.delete(path)
            raise
        connection.execute("RESET disabled_optimizers").fetchall()


def stored_version(engine: Engine, view: View, partition: str) -> Version:
    """The version of a partition in the lake, by the same sums as when it was written."""
    with engine.connect() as connection:
        rows = _rows(engine, connection, view, partition)
        return _version(lambda sql: connection.sql(sql).to_arrow_table(), rows, view.table)[0]


def _version(query: Callable[[str], pa.Table], rows: str, table: Table) -> tuple[Version, pa.Table]:
    """The version of some rows by the table's sums, and these."""
    count = query(f"SELECT count(*) FROM ({rows})").column(0)[0].as_py()
    sums = query(f"WITH results AS ({rows}) {table.sums}")
    digested = digest(sorted([str(v) for v in row.values()] for row in sums.to_pylist()))
    return (Version(count, digested) if count else ABSENT), sums


def _rows(engine: Engine, connection: Any, view: View, partition: str) -> str:
    whole = all(f.certain_partitions(view.table) == (partition,) for f in view.files)
    where = "true" if whole else sql_filter(view.table, [partition])
    return f"SELECT * FROM ({engine.relation(connection, view)}) WHERE {where}"

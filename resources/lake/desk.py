"""Statements of our own over a partition's rows at one moment; what one makes, DuckDB writes itself.

The rows never pass through Python: a statement reads, calculates and writes the next file of a
partition, another sums up what that file holds. `Lake.put` makes the file part of the table.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

import pyarrow as pa

from domain.shared.compute import encoded
from domain.shared.hashing import digest
from domain.shared.table import ABSENT, Version
from resources.lake.engine import Engine, quoted, text_literal
from resources.lake.layout import parse_partition, sql_filter
from resources.lake.view import View

_OPTIONS = "FORMAT parquet, PARQUET_VERSION V2, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE 122880"
_REORDERING = "join_order,build_side_probe_side"


@dataclass(frozen=True)
class Staged:
    """A partition's next file. Nothing refers to it yet."""

    partition: str
    path: str
    version: Version
    sums: pa.Table

    @property
    def num_rows(self) -> int:
        return self.version.rows


@dataclass(frozen=True)
class Desk:
    engine: Engine
    connection: Any
    source: View

    def ask(self, sql: str) -> pa.Table:
        with self.engine.explained(self.source.table, self.source.files):
            found: pa.Table = self.connection.sql(sql).to_arrow_table()
            return found

    def lend(self, name: str, table: pa.Table) -> None:
        """A relation of few rows. Its columns of listed words (Arrow's dictionaries) are ENUMs."""
        self.connection.register(f"{name}_given", table)
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {encoded(name, table)}").fetchall()

    def write(self, target: View, partition: str, rows: str) -> Staged:
        """What `rows` selects as a partition's next file."""
        assert target.state is not None  # noqa: S101
        path, store = _new_path(target, partition), self.engine.store
        columns = ", ".join(quoted(name) for name in target.table.schema.names)
        ids = ", ".join(f"{quoted(f.name)}: {f.id}" for f in target.state.fields)
        file = f"{text_literal(store.sql_path(path))} ({_OPTIONS}, FIELD_IDS {{{ids}}})"
        store.make_folder(path)
        try:
            self.connection.execute(f"COPY (SELECT {columns} FROM ({rows})) TO {file}").fetchall()
            stored = (
                f"SELECT * FROM read_parquet({text_literal(store.sql_path(path))}, hive_partitioning = false)"
            )
            sums = self.ask(f"WITH results AS ({stored}) {target.table.sums}")
        except BaseException:
            store.delete(path)
            raise
        return Staged(partition, path, version_of_sums(sums), sums)


@contextmanager
def desk(engine: Engine, source: View, partition: str, name: str) -> Iterator[Desk]:
    """Where the rows of a partition are known by a name."""
    view = source.holding([partition])
    with engine.connect() as connection, engine.explained(source.table, view.files):
        connection.execute(
            f"CREATE TEMP VIEW {name} AS {_rows(engine, connection, view, partition)}"
        ).fetchall()
        # Of files read by Iceberg's field ids DuckDB does not know how many rows they have, and would look
        # each lent row up among them: twice the work. So relations are joined as written, the largest first.
        connection.execute(f"SET disabled_optimizers = '{_REORDERING}'").fetchall()
        yield Desk(engine, connection, view)
        connection.execute("RESET disabled_optimizers").fetchall()


def stored_version(engine: Engine, view: View, partition: str) -> Version:
    """The version of a partition that is in the lake, told by the same sums as when it was written."""
    with engine.connect() as connection:
        rows = _rows(engine, connection, view, partition)
        return version_of_sums(connection.sql(f"WITH results AS ({rows}) {view.table.sums}").to_arrow_table())


def version_of_sums(sums: pa.Table) -> Version:
    """Every row is counted (`results`) once among those that stand for a unit."""
    found = sums.to_pylist()
    rows = sum(row["results"] for row in found if row["unit_id"] is not None)
    return Version(rows, digest(sorted([str(v) for v in row.values()] for row in found))) if rows else ABSENT


def _rows(engine: Engine, connection: Any, view: View, partition: str) -> str:
    whole = all(f.certain_partitions(view.table) == (partition,) for f in view.files)
    where = "true" if whole else sql_filter(view.table, [partition])
    return f"SELECT * FROM ({engine.relation(connection, view)}) WHERE {where}"


def _new_path(target: View, partition: str) -> str:
    assert target.state is not None  # noqa: S101
    values = zip(target.table.partition_columns, parse_partition(target.table, partition), strict=True)
    folder = "/".join(f"{name}={quote_plus(str(value))}" for name, value in values)
    place = target.state.location.rsplit("/metadata/", 1)[0]
    return f"{place}/data/{folder}/{uuid.uuid4()}.parquet"

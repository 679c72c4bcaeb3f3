"""DuckDB over Arrow values: a query in, a table out. No files, no network, bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

MEMORY_LIMIT = "1GB"
THREADS = 2


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One database per process: opening it costs far more than most queries."""
    return duckdb.connect(
        config={"memory_limit": MEMORY_LIMIT, "threads": str(THREADS), "enable_external_access": "false"}
    )


@contextmanager
def connection(**relations: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    """An in-memory DuckDB that sees the given tables and nothing of the outside. Safe in threads."""
    con = _database().cursor()
    try:
        for name, relation in relations.items():
            con.register(name, relation)
        yield con
    finally:
        for name in relations:
            con.unregister(name)
        con.close()


def query(sql: str, relations: Mapping[str, pa.Table], parameters: Any = None) -> pa.Table:
    with connection(**relations) as con:
        return con.sql(sql, params=parameters).to_arrow_table()


def register(con: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    """Add a table whose dictionary columns are ENUMs: DuckDB would take them as
    text, and text takes twice the work to write."""
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        if not pa.types.is_dictionary(field.type):
            columns.append(f'"{field.name}"')
            continue
        words = column.unify_dictionaries().chunk(0).dictionary.to_pylist() if len(column) else ["-"]
        listed = ", ".join("'" + word.replace("'", "''") + "'" for word in words)
        columns.append(f'"{field.name}"::ENUM ({listed}) AS "{field.name}"')
    con.register(f"{name}_given", table)
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {', '.join(columns)} FROM {name}_given"
    ).fetchall()

"""A DuckDB file with views over the files of the lake, for programs that speak DuckDB and no Iceberg.

DuckDB cannot read Iceberg's catalogue without an extension from the network, and a view cannot look up its
files. So the views name the files of one moment. These stay where they are for as long as past states can be
read (`Table.history`); after that a view fails on the file that is gone, and never has wrong rows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from domain.shared.error import InvalidInput
from resources.lake.engine import Engine, identifier, quoted, text_literal
from resources.lake.view import View

NOTE = "perennial_attached"
"""The table that says what was attached, and marks a file as ours."""


def attach(
    path: Path, views: Mapping[str, View], computed: Mapping[str, str], engine: Engine, now: datetime
) -> int:
    """Write the file anew, in one step: programs that have it open go on with the old one."""
    if not engine.warehouse.startswith("file:"):
        raise InvalidInput(
            "views need the lake's files on this machine, and they are in an object store",
            remedy="write what you need with `perennial sql --parquet OUT`",
        )
    _check_ours(path)
    scratch = scratch_of(path)
    try:
        with duckdb.connect(str(scratch)) as connection:
            _fill(connection, views, computed, engine, now)
        scratch.replace(path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}") from None
    except duckdb.IOException as error:
        raise InvalidInput(f"{path} cannot be written: {str(error).splitlines()[0]}") from None
    finally:
        scratch.unlink(missing_ok=True)
    return len(views) + len(computed)


def scratch_of(path: Path) -> Path:
    """Return the file that this process writes before it takes the place of `path`."""
    return path.with_name(f".{path.name}.{os.getpid()}")


def _check_ours(path: Path) -> None:
    if not path.exists():
        return
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            connection.execute(f"FROM {NOTE} LIMIT 1").fetchall()
    except duckdb.Error as error:
        raise InvalidInput(
            f"{path} is there and is not replaced: {str(error).splitlines()[0]}",
            remedy="name another file, or delete this one",
        ) from None


def _fill(
    connection: Any, views: Mapping[str, View], computed: Mapping[str, str], engine: Engine, now: datetime
) -> None:
    connection.execute(
        f"CREATE TABLE {NOTE} (table_name TEXT, snapshot_id BIGINT, rows BIGINT, attached_at TIMESTAMPTZ)"
    )
    for schema in sorted({name.split(".")[0] for name in (*views, *computed)}):
        connection.execute(f"CREATE SCHEMA {quoted(schema)}")
    for name, view in views.items():
        with engine.explained(view):
            _create(connection, name, view, engine)
        snapshot, rows = view.listing.snapshot_id, sum(f.rows for f in view.files)
        connection.execute(f"INSERT INTO {NOTE} VALUES (?, ?, ?, ?)", [name, snapshot, rows, now])
    for name, select in computed.items():
        connection.execute(f"CREATE VIEW {identifier(name)} AS {select}")


def _create(connection: Any, name: str, view: View, engine: Engine) -> None:
    # Rows that another engine deleted are left out by pyiceberg alone: such a table is copied.
    kind = "TABLE" if view.has_deletes and view.files else "VIEW"
    connection.execute(f"CREATE {kind} {identifier(name)} AS {engine.relation(connection, view)}")
    connection.execute(f"COMMENT ON {kind} {identifier(name)} IS {text_literal(view.table.description)}")
    for column in view.table.columns:
        text = f"{column.description} [{column.unit}]" if column.unit else column.description
        of = f"{identifier(name)}.{quoted(column.name)}"
        connection.execute(f"COMMENT ON COLUMN {of} IS {text_literal(text)}")

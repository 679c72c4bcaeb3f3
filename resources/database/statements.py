"""SQL that SQLite and Postgres express differently, and lists too long for one statement."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, Select, Table, text
from sqlalchemy.dialects import postgresql, sqlite

CHUNK = 1_000
"""Values in one IN list."""

_LOCKS = 0x1ED6E4
"""The first number of our advisory locks: other programs may lock names of their own."""
_SCRIPTS = Path(__file__).parent / "migrations" / "sql"
_TYPES = {
    "sqlite": {
        "id": "INTEGER",
        "key": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
        "json": "JSON",
        "moment": "DATETIME",
        "false": "0",
    },
    "postgresql": {
        "id": "BIGINT",
        "key": "BIGSERIAL PRIMARY KEY",
        "json": "JSONB",
        "moment": "TIMESTAMP WITH TIME ZONE",
        "false": "false",
    },
}

T = TypeVar("T")


def insert_into(table: Table, on: Engine | Connection) -> sqlite.Insert | postgresql.Insert:
    """An INSERT that may say what happens where a row exists already."""
    return postgresql.insert(table) if on.dialect.name == "postgresql" else sqlite.insert(table)


def chunks(values: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    iterator = iter(values)
    while chunk := list(islice(iterator, size)):
        yield chunk


def rows_in(
    connection: Connection, query: Select[Any], column: ColumnElement[Any], values: Iterable[Any]
) -> Iterator[Any]:
    """The rows of a query whose column has one of these values, however many they are."""
    for chunk in chunks(sorted(set(values))):
        yield from connection.execute(query.where(column.in_(chunk)))


def lock_name(connection: Connection, name: str) -> None:
    """Lock a name until the transaction ends; other transactions that lock it wait.

    For rows that do not exist yet: Postgres cannot lock those, and on SQLite a writer is alone anyway.
    """
    if connection.dialect.name == "postgresql":
        number = zlib.crc32(name.encode())
        connection.execute(
            text("SELECT pg_advisory_xact_lock(:ours, :name)"),
            {"ours": _LOCKS, "name": number - 2**32 if number >= 2**31 else number},
        )


def run_script(connection: Connection, name: str) -> None:
    """Execute the statements of a migration's SQL file, with the column types of this database."""
    script = (_SCRIPTS / f"{name}.sql").read_text(encoding="utf-8")
    for statement in script.format(**_TYPES[connection.dialect.name]).split(";"):
        if statement.strip():
            connection.exec_driver_sql(statement)

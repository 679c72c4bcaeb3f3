"""What readers ask the SQL catalog: which metadata file is current for each table, and whose catalog it is.

Read directly, because these statements are all a reader needs of the catalog, and importing pyiceberg
for them would cost every command a second.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from domain.shared.error import TransientResourceError
from resources.lake.settings import CATALOG_NAME, IDENTITY_TABLE, Place

_QUERY = (
    "SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables "
    f"WHERE catalog_name = '{CATALOG_NAME}' AND metadata_location IS NOT NULL"
)
_IDENTITY = f"SELECT identity FROM {IDENTITY_TABLE} WHERE catalog_name = '{CATALOG_NAME}'"

CONNECT_SECONDS = 10
"""Else a server that takes the connection and says nothing would be waited for without end."""


class Pointers(Protocol):
    def read(self) -> dict[str, str]:
        """Metadata location by table name; empty while there is no catalog yet."""

    def identity(self) -> str | None:
        """What tells this catalog from every other; None before its first write."""


class SqlitePointers:
    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, str]:
        return dict(self._ask(_QUERY))

    def identity(self) -> str | None:
        return _only(self._ask(_IDENTITY))

    def _ask(self, query: str) -> list[Any]:
        if not self._path.exists():
            return []
        try:
            # A connection per look: cheap, safe across threads and forks, and never holds a lock. Where
            # nobody can write, SQLite must not look for the files of a writer: it could not make them.
            mode = "mode=rw" if os.access(self._path.parent, os.W_OK) else "mode=ro&immutable=1"
            address = f"{self._path.as_uri()}?{mode}"
            with closing(sqlite3.connect(address, uri=True, timeout=30)) as connection:
                return connection.execute(query).fetchall()
        except sqlite3.DatabaseError as error:
            if "no such table" in str(error):
                return []
            raise TransientResourceError(
                f"the lake's catalog {self._path} cannot be read: {error}",
                reason_code="lake_catalog",
                remedy="restore this file from a backup; if it is whole, check its rights and its disk",
            ) from error


class PostgresPointers:
    """One connection, kept open and reopened when it is lost."""

    def __init__(self, place: Place) -> None:
        self._dsn = place.postgres_dsn
        self._guard = threading.Lock()
        self._connection: Any = None

    def read(self) -> dict[str, str]:
        return dict(self._ask(_QUERY))

    def identity(self) -> str | None:
        return _only(self._ask(_IDENTITY))

    def _ask(self, query: str) -> list[Any]:
        import psycopg2
        import psycopg2.errors

        with self._guard:
            try:
                return self._once(query)
            except psycopg2.errors.UndefinedTable:
                return []
            except (psycopg2.OperationalError, psycopg2.InterfaceError):
                self._connection = None  # the server went away since the last look
            try:
                return self._once(query)
            except psycopg2.errors.UndefinedTable:
                return []
            except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
                self._connection = None
                raise TransientResourceError(
                    f"the lake's catalog cannot be reached: {_first_line(error)}",
                    reason_code="lake_catalog",
                    remedy="see that this database exists and runs; PERENNIAL_CATALOG_URL, or else "
                    "PERENNIAL_DATABASE_URL, names it",
                ) from error

    def _once(self, query: str) -> list[Any]:
        import psycopg2

        if self._connection is None:
            self._connection = psycopg2.connect(self._dsn, connect_timeout=CONNECT_SECONDS)
            self._connection.autocommit = True
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())


def _only(rows: list[Any]) -> str | None:
    found: str | None = rows[0][0] if rows else None
    return found


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def pointers_for(place: Place) -> Pointers:
    return SqlitePointers(place.sqlite_path) if place.kind == "sqlite" else PostgresPointers(place)

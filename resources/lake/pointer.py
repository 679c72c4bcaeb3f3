"""Which metadata file is current for each table: one row per table in the SQL catalog.

Read directly, because this one statement is all a reader needs of the catalog, and importing pyiceberg
for it would cost every command a second.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any, Protocol

from domain.shared.error import TransientResourceError
from resources.lake.settings import CATALOG_NAME, Place

_QUERY = (
    "SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables "
    f"WHERE catalog_name = '{CATALOG_NAME}' AND metadata_location IS NOT NULL"
)


CONNECT_SECONDS = 10
"""Else a server that takes the connection and says nothing would be waited for without end."""


class Pointers(Protocol):
    def read(self) -> dict[str, str]:
        """Metadata location by table name; empty while there is no catalog yet."""


class SqlitePointers:
    def __init__(self, place: Place) -> None:
        self._path = place.sqlite_path

    def read(self) -> dict[str, str]:
        if not self._path.exists():
            return {}
        try:
            # A connection per look: cheap, safe across threads and forks, and never holds a lock. Where
            # nobody can write, SQLite must not look for the files of a writer: it could not make them.
            mode = "mode=rw" if os.access(self._path.parent, os.W_OK) else "mode=ro&immutable=1"
            address = f"{self._path.as_uri()}?{mode}"
            with closing(sqlite3.connect(address, uri=True, timeout=30)) as connection:
                return dict(connection.execute(_QUERY).fetchall())
        except sqlite3.DatabaseError as error:
            if "no such table" in str(error):
                return {}
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
        import psycopg2
        import psycopg2.errors

        with self._guard:
            try:
                return self._once()
            except psycopg2.errors.UndefinedTable:
                return {}
            except (psycopg2.OperationalError, psycopg2.InterfaceError):
                self._connection = None  # the server went away since the last look
            try:
                return self._once()
            except psycopg2.errors.UndefinedTable:
                return {}
            except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
                self._connection = None
                raise TransientResourceError(
                    f"the lake's catalog cannot be reached: {_first_line(error)}",
                    reason_code="lake_catalog",
                    remedy="see that this database exists and runs; PERENNIAL_CATALOG_URL, or else "
                    "PERENNIAL_DATABASE_URL, names it",
                ) from error

    def _once(self) -> dict[str, str]:
        import psycopg2

        if self._connection is None:
            self._connection = psycopg2.connect(self._dsn, connect_timeout=CONNECT_SECONDS)
            self._connection.autocommit = True
        with self._connection.cursor() as cursor:
            cursor.execute(_QUERY)
            return dict(cursor.fetchall())


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def pointers_for(place: Place) -> Pointers:
    kinds: dict[str, Callable[[Place], Pointers]] = {"sqlite": SqlitePointers, "postgres": PostgresPointers}
    return kinds[place.kind](place)

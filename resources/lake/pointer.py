"""Which metadata file is current for each table: one row per table in the SQL catalog.

Read directly, because this one statement is all a reader needs of the catalog, and importing pyiceberg
for it would cost every command a second.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from typing import Any, Protocol

from domain.shared.error import TransientResourceError
from resources.lake.settings import CATALOG_NAME, Place

_QUERY = (
    "SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables "
    f"WHERE catalog_name = '{CATALOG_NAME}' AND metadata_location IS NOT NULL"
)


class Pointers(Protocol):
    def read(self) -> dict[str, str]:
        """Metadata location by table name; empty while there is no catalog yet."""


class SqlitePointers:
    def __init__(self, place: Place) -> None:
        self._path = place.sqlite_path

    def read(self) -> dict[str, str]:
        if not self._path.exists():
            return {}
        # A connection per look: cheap, safe across threads and forks, and never holds a lock.
        connection = sqlite3.connect(f"{self._path.as_uri()}?mode=rw", uri=True, timeout=30)
        try:
            return dict(connection.execute(_QUERY).fetchall())
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return {}
            raise TransientResourceError(
                f"the lake's catalog {self._path} cannot be read: {error}"
            ) from error
        finally:
            connection.close()


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
                raise TransientResourceError(f"the lake's catalog cannot be reached: {error}") from error

    def _once(self) -> dict[str, str]:
        import psycopg2

        if self._connection is None:
            self._connection = psycopg2.connect(self._dsn)
            self._connection.autocommit = True
        with self._connection.cursor() as cursor:
            cursor.execute(_QUERY)
            return dict(cursor.fetchall())


def pointers_for(place: Place) -> Pointers:
    kinds: dict[str, Callable[[Place], Pointers]] = {"sqlite": SqlitePointers, "postgres": PostgresPointers}
    return kinds[place.kind](place)

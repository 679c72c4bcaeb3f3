"""What readers ask the SQL catalog: which metadata file is current for each table.

Read directly: importing pyiceberg for this one statement would cost every command a second.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
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
    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, str]:
        if not self._path.exists():
            return {}
        try:
            # A connection per read: cheap, safe across threads and forks, and never holds a lock.
            with closing(
                sqlite3.connect(f"{self._path.as_uri()}?mode=rw", uri=True, timeout=30)
            ) as connection:
                return dict(connection.execute(_QUERY).fetchall())
        except sqlite3.DatabaseError as error:
            if "no such table" in str(error):
                return {}
            raise self._failed(str(error)) from error

    def _failed(self, said: str) -> TransientResourceError:
        message = f"the lake's catalog {self._path} cannot be read: {said}"
        if "disk I/O error" in said or "is full" in said:
            remedy = "free space on its disk: reading takes some too; if there is enough, check the disk"
            return TransientResourceError(message, reason_code="disk_full", remedy=remedy)
        remedy = "restore this file from a backup; if it is whole, check its permissions and its disk"
        return TransientResourceError(message, reason_code="lake_catalog", remedy=remedy)


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
            self._connection = psycopg2.connect(self._dsn)
            self._connection.autocommit = True
        with self._connection.cursor() as cursor:
            cursor.execute(_QUERY)
            return dict(cursor.fetchall())


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def pointers_for(place: Place) -> Pointers:
    return SqlitePointers(place.sqlite_path) if place.kind == "sqlite" else PostgresPointers(place)

"""What readers ask the catalog: which metadata file is current for each table.

Read directly: importing pyiceberg for this one statement would cost every command a second.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from domain.shared.error import TransientResourceError
from resources.lake.location import CATALOG_NAME, LakeLocation

_QUERY = (
    "SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables "
    f"WHERE catalog_name = '{CATALOG_NAME}' AND metadata_location IS NOT NULL"
)


class CatalogReader(Protocol):
    def metadata_locations(self) -> dict[str, str]:
        """By table name; empty while there is no catalog yet."""


class SqliteCatalogReader:
    def __init__(self, path: Path) -> None:
        self._path = path

    def metadata_locations(self) -> dict[str, str]:
        if not self._path.exists():
            return {}
        try:
            # A connection per read: cheap, safe across threads and forks, and never holds a lock.
            address = f"{self._path.as_uri()}?mode=rw"
            with closing(sqlite3.connect(address, uri=True, timeout=30)) as connection:
                return dict(connection.execute(_QUERY).fetchall())
        except sqlite3.DatabaseError as error:
            if "no such table" in str(error):
                return {}
            raise self._failed(str(error)) from error

    def _failed(self, text: str) -> TransientResourceError:
        message = f"the lake's catalog {self._path} cannot be read: {text}"
        if "disk I/O error" in text or "is full" in text:
            remedy = "free space on its disk: reading takes some too; if there is enough, check the disk"
            return TransientResourceError(message, reason_code="disk_full", remedy=remedy)
        remedy = "restore this file from a backup; if it is whole, check its permissions and its disk"
        return TransientResourceError(message, reason_code="lake_catalog", remedy=remedy)


class PostgresCatalogReader:
    """Reads over one connection, opened again when it is lost."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._guard = threading.Lock()
        self._connection: Any = None

    def metadata_locations(self) -> dict[str, str]:
        import psycopg2

        with self._guard:
            for attempt in (1, 2):
                try:
                    return self._read()
                except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
                    self._connection = None  # a kept connection may be lost; a new one is not
                    if attempt == 2:
                        raise _unreachable(error) from error
        raise AssertionError("unreachable")

    def _read(self) -> dict[str, str]:
        import psycopg2
        import psycopg2.errors

        if self._connection is None:
            self._connection = psycopg2.connect(self._dsn)
            self._connection.autocommit = True
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(_QUERY)
            except psycopg2.errors.UndefinedTable:
                return {}
            return dict(cursor.fetchall())


def _unreachable(error: Exception) -> TransientResourceError:
    first = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return TransientResourceError(
        f"the lake's catalog cannot be reached: {first}",
        reason_code="lake_catalog",
        remedy="check that this database exists and runs; PERENNIAL_CATALOG_URL, or else "
        "PERENNIAL_DATABASE_URL, names it",
    )


def catalog_reader(where: LakeLocation) -> CatalogReader:
    if where.kind == "sqlite":
        return SqliteCatalogReader(where.sqlite_path)
    return PostgresCatalogReader(where.postgres_dsn)

"""What readers ask the catalog: which metadata file is current for each table.

Read directly: importing pyiceberg for this one statement would cost every command a second.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

from domain.shared.error import TransientResourceError
from resources.lake.location import CATALOG_NAME, LakeLocation

_QUERY = (
    "SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables "
    f"WHERE catalog_name = '{CATALOG_NAME}' AND metadata_location IS NOT NULL"
)


class SqliteCatalogReader:
    def __init__(self, path: Path) -> None:
        self._path = path

    def metadata_locations(self) -> dict[str, str]:
        """By table name; empty while there is no catalog yet."""
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
            full = "disk I/O error" in str(error) or "is full" in str(error)
            raise TransientResourceError(
                f"the lake's catalog {self._path} cannot be read: {error}",
                reason_code="disk_full" if full else "lake_catalog",
                remedy="free space on its disk: reading takes some too; if there is enough, check the disk"
                if full
                else "restore this file from a backup; if it is whole, check its permissions and its disk",
            ) from error


class PostgresCatalogReader:
    """Reads over one connection, opened again when it is lost."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._guard = threading.Lock()
        self._connection: Any = None

    def metadata_locations(self) -> dict[str, str]:
        import psycopg2

        with self._guard:
            for _ in range(2):
                try:
                    return self._read()
                except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
                    self._connection = None  # a kept connection may be lost; a new one is not
                    failure = error
        raise TransientResourceError(
            f"the lake's catalog cannot be reached: {(str(failure).strip() or 'no answer').splitlines()[0]}",
            reason_code="lake_catalog",
            remedy="check that this database exists and runs; PERENNIAL_CATALOG_URL, or else "
            "PERENNIAL_DATABASE_URL, names it",
        ) from failure

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


CatalogReader = SqliteCatalogReader | PostgresCatalogReader


def catalog_reader(where: LakeLocation) -> CatalogReader:
    if where.kind == "sqlite":
        return SqliteCatalogReader(where.sqlite_path)
    return PostgresCatalogReader(where.postgres_dsn)

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

_LOOKS = 5


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
        for _ in range(_LOOKS):
            mode = self._mode()
            try:
                found, failed = self._rows(query, mode), None
            except sqlite3.DatabaseError as error:
                found, failed = [], error
            if mode == self._mode():
                break
            # A writer has come or gone in between, and its log with it.
        else:
            failed = failed or sqlite3.OperationalError("writers come and go")
        if failed is not None and "no such table" not in str(failed):
            raise self._refused(mode, failed) from failed
        return found

    def _mode(self) -> str:
        """How SQLite may open it: what a writer has not yet put into the file itself is in its log."""
        if os.access(self._path.parent, os.W_OK):
            return "mode=rw"
        # Without a log SQLite would make one and could not; told that nothing changes it does without. But
        # then it would pass over a log that is there, and all commits in it.
        return "mode=ro" if self._log.exists() else "mode=ro&immutable=1"

    def _rows(self, query: str, mode: str) -> list[Any]:
        # A connection per look: cheap, safe across threads and forks, and never holds a lock.
        address = f"{self._path.as_uri()}?{mode}"
        with closing(sqlite3.connect(address, uri=True, timeout=30)) as connection:
            return connection.execute(query).fetchall()

    @property
    def _log(self) -> Path:
        return self._path.with_name(f"{self._path.name}-wal")

    def _refused(self, mode: str, error: sqlite3.DatabaseError) -> TransientResourceError:
        said, here = str(error), self._path
        why, remedy = said, "restore this file from a backup; if it is whole, check its rights and its disk"
        if "disk I/O error" in said or "is full" in said:
            return TransientResourceError(
                f"the lake's catalog {here} cannot be read: {said}",
                reason_code="disk_full",
                remedy="free space on its disk: reading takes some too; if there is enough, look at the disk",
            )
        closed = "unable to open" in said or "readonly" in said
        if closed and mode == "mode=ro" and os.access(here, os.R_OK):
            why = (
                f"its newest commits are in {self._log.name} beside it, and this user can neither open nor "
                f"make the {here.name}-shm that reading them takes: {said}"
            )
            remedy = (
                f"run `perennial status` once as a user who may write in {here.parent}, or let this user "
                f"read every file {here.name}* there"
            )
        return TransientResourceError(
            f"the lake's catalog {here} cannot be read: {why}", reason_code="lake_catalog", remedy=remedy
        )


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
            self._connection = psycopg2.connect(self._dsn)
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

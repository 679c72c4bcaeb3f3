"""Connections and transactions: how SQLite and Postgres are opened.

Every transaction is short and goes through `reading` or `writing`.
"""

from __future__ import annotations

import random
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, exc, make_url, select, table
from sqlalchemy import column as sql_column

from domain.shared.error import InvalidInput
from resources.database.errors import driver_errors, is_missing, schema_mismatch
from resources.database.schema import BRANCHES, HEAD, VERSION_TABLE

SQLITE_PATIENCE = 30
"""Seconds a SQLite transaction waits for its turn."""

_WRITES = "ledger_writes"
_CONNECTING = {"connect_timeout": 10, "application_name": "perennial-ledger"}
"""How Postgres is connected to, unless the address says otherwise."""

_fitting: weakref.WeakSet[Engine] = weakref.WeakSet()
"""Engines whose schema was found to fit: one check per process is enough."""


def normalise_url(url: str) -> str:
    """The same database with its driver named: a bare `postgresql://` means psycopg 3 to SQLAlchemy 2.1."""
    parsed = make_url(url)
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg2")
    return parsed.render_as_string(hide_password=False)


def open_engine(url: str) -> Engine:
    """An engine that has not connected yet."""
    parsed = make_url(normalise_url(url))
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise InvalidInput(
                "a ledger in memory is seen by one connection only",
                remedy="name a file: sqlite:////folder/ledger.db",
            )
        engine = create_engine(parsed, hide_parameters=True)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    if backend == "postgresql":
        return create_engine(
            parsed,
            hide_parameters=True,
            pool_pre_ping=True,
            pool_size=2,
            executemany_mode="values_plus_batch",
            connect_args={name: value for name, value in _CONNECTING.items() if name not in parsed.query},
        )
    raise InvalidInput(
        f"the ledger does not speak {backend}", remedy="use a sqlite:/// or postgresql:// address"
    )


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver's own transaction handling begins late and DEFERRED; `_begin_sqlite` says BEGIN instead.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {SQLITE_PATIENCE * 1000}")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A deferred transaction that turns into a writer cannot wait for its turn: it fails "locked".
    if connection.get_execution_options().get(_WRITES, False):
        _begin_immediate(connection.connection.driver_connection)
    else:
        connection.exec_driver_sql("BEGIN")


def _begin_immediate(connection: Any) -> None:
    """Wait for the write lock by trying every few milliseconds.

    SQLite's own waiting tries ever more rarely, up to ten times a second, so those who have waited longest
    have the poorest chance: of eight busy writers one starved for more than 30 seconds.
    """
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        deadline = time.monotonic() + SQLITE_PATIENCE
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(random.uniform(0.0005, 0.004))  # noqa: S311
            else:
                return
    finally:
        connection.execute(f"PRAGMA busy_timeout = {SQLITE_PATIENCE * 1000}")


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that only reads; on SQLite it never waits for a writer."""
    with driver_errors(engine):
        _check_schema(engine)
        with engine.connect() as connection, connection.begin():
            yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that may write; on SQLite it is the only one until it ends."""
    with driver_errors(engine):
        _check_schema(engine)
        with writing_unchecked(engine) as connection:
            yield connection


@contextmanager
def writing_unchecked(engine: Engine, prepare: Callable[[Any], None] | None = None) -> Iterator[Connection]:
    """As `writing`, whatever the schema, for the migration itself. `prepare` gets the driver's connection."""
    with engine.connect().execution_options(**{_WRITES: True}) as connection:
        if prepare is not None:
            prepare(connection.connection.driver_connection)
        with connection.begin():
            yield connection


def schema_versions(connection: Connection) -> frozenset[str]:
    """The newest migration that is there, and that of each optional branch."""
    versions = table(VERSION_TABLE, sql_column("version_num"))
    return frozenset(connection.execute(select(versions.c.version_num)).scalars())


def schema_version(connection: Connection) -> str | None:
    return next(iter(schema_versions(connection).difference(BRANCHES.values())), None)


def has_branch(connection: Connection, branch: str) -> bool:
    """Whether the tables of an optional branch of the schema are there."""
    return BRANCHES[branch] in schema_versions(connection)


def forget_schema(engine: Engine) -> None:
    """Check the schema again before the next transaction."""
    _fitting.discard(engine)


def found_version(engine: Engine) -> str | None:
    """The version of the database's schema, None where there is none."""
    return next(iter(found_versions(engine).difference(BRANCHES.values())), None)


def found_versions(engine: Engine) -> frozenset[str]:
    """The same with the versions of the optional branches."""
    database = engine.url.database
    if engine.dialect.name == "sqlite" and not (database and Path(database).exists()):
        return frozenset()  # connecting would leave an empty file behind
    try:
        with engine.connect() as connection, connection.begin():
            return schema_versions(connection)
    except (exc.OperationalError, exc.ProgrammingError) as error:
        if not is_missing(error):
            raise
        return frozenset()


def _check_schema(engine: Engine) -> None:
    if engine not in _fitting:
        if (found := found_version(engine)) != HEAD:
            raise schema_mismatch(engine, found)
        _fitting.add(engine)

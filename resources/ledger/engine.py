"""Connections and transactions: how SQLite and Postgres are opened, and what their errors mean.

Every transaction of the ledger is short and goes through `reading` or `writing`. This is the only module
that looks into a database driver's messages.
"""

from __future__ import annotations

import random
import sqlite3
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, exc, make_url, select, table
from sqlalchemy import column as sql_column

from domain.shared.error import InvalidInput, PerennialError, PermanentRunnerError, TransientResourceError
from resources.ledger.read_only import check_at_rest, read_where_writing_is_impossible
from resources.ledger.schema import HEAD, VERSION_TABLE

SQLITE_PATIENCE = 30
"""Seconds a SQLite transaction waits for its turn."""

_WRITES = "ledger_writes"
_CONNECTING = {"connect_timeout": 10, "application_name": "perennial-ledger"}
_MIGRATE = "run `perennial migrate`, or let `make up` do it"

_IS_IT_THERE = "see that this database exists and runs; PERENNIAL_DATABASE_URL names it"

_OUTSIDE = (exc.OperationalError, exc.InterfaceError)

_fitting: weakref.WeakSet[Engine] = weakref.WeakSet()
"""Engines whose schema was found to fit; one look per process is enough."""


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
        read_where_writing_is_impossible(engine)
        return engine
    if backend == "postgresql":
        return create_engine(
            parsed,
            hide_parameters=True,
            pool_pre_ping=True,
            pool_size=2,
            executemany_mode="values_plus_batch",
            # What a person wrote into the address goes before.
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
    """Wait for the write lock by asking every few milliseconds.

    SQLite's own waiting asks ever more rarely, up to ten times a second, so those who have waited longest
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
    """A transaction that only looks; on SQLite it never waits for a writer."""
    with speaking(engine):
        _check_schema(engine)
        with engine.connect() as connection, connection.begin():
            yield connection
            check_at_rest(connection)


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that may write; on SQLite it is the only one until it ends."""
    with speaking(engine):
        _check_schema(engine)
        with writing_unchecked(engine) as connection:
            yield connection


@contextmanager
def writing_unchecked(engine: Engine) -> Iterator[Connection]:
    """As `writing`, whatever the schema: for the migration itself."""
    with (
        engine.connect().execution_options(**{_WRITES: True}) as connection,
        connection.begin(),
    ):
        yield connection


def place(engine: Engine) -> str:
    """The database's address as people may read it."""
    return engine.url.render_as_string(hide_password=True)


def schema_version(connection: Connection) -> str | None:
    """The one version row, None where there is none."""
    versions = table(VERSION_TABLE, sql_column("version_num"))
    rows = connection.execute(select(versions.c.version_num)).scalars().all()
    if len(rows) > 1:
        raise InvalidInput(
            f"the ledger has {len(rows)} schema versions at once: a migration stopped half-way",
            reason_code="ledger_schema",
            remedy="restore the database from its backup, then migrate again",
        )
    return rows[0] if rows else None


def forget_schema(engine: Engine) -> None:
    """Look at the schema again before the next transaction."""
    _fitting.discard(engine)


def _check_schema(engine: Engine) -> None:
    if engine in _fitting:
        return
    database = engine.url.database
    if engine.dialect.name == "sqlite" and not (database and Path(database).exists()):
        # Connecting would leave an empty file behind.
        raise InvalidInput(f"there is no ledger at {database}", reason_code="ledger_schema", remedy=_MIGRATE)
    try:
        with engine.connect() as connection, connection.begin():
            found = schema_version(connection)
    except (exc.OperationalError, exc.ProgrammingError) as error:
        if not _is_missing(error):
            raise
        found = None
    if found == HEAD:
        _fitting.add(engine)
        return
    raise schema_mismatch(engine, found)


def schema_mismatch(engine: Engine, found: str | None) -> InvalidInput:
    if found is not None and found > HEAD:
        return InvalidInput(
            f"the ledger at {place(engine)} has schema {found}, newer than this program's {HEAD}",
            reason_code="ledger_schema",
            remedy="upgrade this program, or point it at another database",
        )
    return InvalidInput(
        f"the ledger at {place(engine)} has schema {found or 'none'}, this program needs {HEAD}",
        reason_code="ledger_schema",
        remedy=_MIGRATE,
    )


def _is_missing(error: exc.DBAPIError) -> bool:
    """A table or a column that the schema of this version has."""
    said = str(error.orig)
    return (
        "no such table" in said
        or "no such column" in said
        or getattr(error.orig, "pgcode", None) in ("42P01", "42703")
    )


@contextmanager
def speaking(engine: Engine) -> Iterator[None]:
    """Turn what a driver raises into the errors the platform knows."""
    try:
        yield
    except exc.DBAPIError as error:
        if _is_missing(error):
            raise half_migrated(engine, _first_line(error.orig)) from error
        # A bare DatabaseError is SQLite's for a file that is none of its own.
        if not isinstance(error, _OUTSIDE) and type(error) is not exc.DatabaseError:
            raise
        raise _translated(engine, error.orig) from error
    except sqlite3.DatabaseError as error:  # from `_begin_immediate`, which SQLAlchemy does not wrap
        raise _translated(engine, error) from error
    except exc.TimeoutError as error:
        raise TransientResourceError(
            f"no connection to the ledger at {place(engine)} came free in time",
            reason_code="ledger_unavailable",
        ) from error


def _translated(engine: Engine, error: BaseException | None) -> PerennialError:
    said = _first_line(error)
    message = f"the ledger at {place(engine)} refused: {said}"
    if "readonly" in said or "read-only" in said:
        return PermanentRunnerError(
            message,
            reason_code="ledger_read_only",
            remedy="make the disk and the ledger's folder writable for this user",
        )
    if "unable to open" in said:
        return PermanentRunnerError(
            message, reason_code="ledger_unreachable", remedy="check the folder of the ledger and its rights"
        )
    if "is full" in said or "No space left" in said:
        return TransientResourceError(message, reason_code="disk_full", remedy="free space on the disk")
    if "authentication failed" in said:
        return PermanentRunnerError(
            message,
            reason_code="ledger_credentials",
            remedy="correct user and password of PERENNIAL_DATABASE_URL",
        )
    if "not a database" in said or "disk image is malformed" in said:
        return PermanentRunnerError(
            message, reason_code="ledger_damaged", remedy="restore this file from a backup"
        )
    remedy = "" if engine.dialect.name == "sqlite" else _IS_IT_THERE
    return TransientResourceError(message, reason_code="ledger_unavailable", remedy=remedy)


def _first_line(error: BaseException | None) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0]


def half_migrated(engine: Engine, finding: str) -> InvalidInput:
    return InvalidInput(
        f"the ledger at {place(engine)} is half-migrated: {finding}",
        reason_code="ledger_schema",
        remedy="restore the database from its backup, or start with an empty one, then migrate again",
    )

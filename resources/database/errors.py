"""What a database driver's errors mean, as errors of the platform. Nothing else reads drivers' messages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, exc

from domain.shared.error import InvalidInput, PerennialError, PermanentRunnerError, TransientResourceError
from resources.database.schema import HEAD

_OUTSIDE = (exc.OperationalError, exc.InterfaceError)
_PERMANENT = (
    (
        ("readonly", "read-only"),
        "ledger_read_only",
        "make the disk and the ledger's folder writable for this user",
    ),
    (("unable to open",), "ledger_unreachable", "check the folder of the ledger and its rights"),
    (
        ("authentication failed",),
        "ledger_credentials",
        "correct user and password of PERENNIAL_DATABASE_URL",
    ),
    (
        ("not a database", "disk image is malformed"),
        "ledger_damaged",
        "restore this file from a backup",
    ),
)
"""Parts of messages, the reason code they stand for, and the remedy."""


def location(engine: Engine) -> str:
    """The database's address without its password."""
    return engine.url.render_as_string(hide_password=True)


@contextmanager
def driver_errors(engine: Engine) -> Iterator[None]:
    """Turn what a driver raises into typed errors."""
    try:
        yield
    except exc.DBAPIError as error:
        if is_missing(error):
            raise half_migrated(engine, _first_line(error.orig)) from error
        # A bare DatabaseError is SQLite's for a file that is no database.
        if not isinstance(error, _OUTSIDE) and type(error) is not exc.DatabaseError:
            raise
        raise _translated(engine, error.orig) from error
    except sqlite3.DatabaseError as error:  # from BEGIN IMMEDIATE, which SQLAlchemy does not wrap
        raise _translated(engine, error) from error
    except exc.TimeoutError as error:
        raise TransientResourceError(
            f"no connection to the ledger at {location(engine)} became free in time",
            reason_code="ledger_unavailable",
        ) from error


def is_missing(error: exc.DBAPIError) -> bool:
    """Whether the schema lacks a table or a column that this version has."""
    message = str(error.orig)
    return (
        "no such table" in message
        or "no such column" in message
        or getattr(error.orig, "pgcode", None) in ("42P01", "42703")
    )


def _translated(engine: Engine, error: BaseException | None) -> PerennialError:
    first_line = _first_line(error)
    message = f"the ledger at {location(engine)} refused: {first_line}"
    for parts, reason_code, remedy in _PERMANENT:
        if any(part in first_line for part in parts):
            return PermanentRunnerError(message, reason_code=reason_code, remedy=remedy)
    if "is full" in first_line or "No space left" in first_line:
        return TransientResourceError(message, reason_code="disk_full", remedy="free space on the disk")
    remedy = ""
    if engine.dialect.name != "sqlite":
        remedy = "see that this database exists and runs; PERENNIAL_DATABASE_URL names it"
    return TransientResourceError(message, reason_code="ledger_unavailable", remedy=remedy)


def _first_line(error: BaseException | None) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0]


def schema_mismatch(engine: Engine, found: str | None) -> InvalidInput:
    if found is not None and found > HEAD:
        return InvalidInput(
            f"the ledger at {location(engine)} has schema {found}, newer than this program's {HEAD}",
            reason_code="ledger_schema",
            remedy="upgrade this program, or point it at another database",
        )
    return InvalidInput(
        f"the ledger at {location(engine)} has schema {found or 'none'}, this program needs {HEAD}",
        reason_code="ledger_schema",
        remedy="run `perennial migrate`, or let `make up` do it",
    )


def half_migrated(engine: Engine, finding: str) -> InvalidInput:
    return InvalidInput(
        f"the ledger at {location(engine)} is half-migrated: {finding}",
        reason_code="ledger_schema",
        remedy="restore the database from its backup, or start with an empty one, then migrate again",
    )

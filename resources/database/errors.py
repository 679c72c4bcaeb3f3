"""What a database driver's errors mean, as errors of the platform. Nothing else reads drivers' messages."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, exc

from domain.shared.error import (
    InfrastructureError,
    InvalidInput,
    PermanentRunnerError,
    TransientResourceError,
)
from resources.database.schema import HEAD

_OUTSIDE = (exc.OperationalError, exc.InterfaceError)
_PERMANENT = (
    ("readonly|read-only", "ledger_read_only", "make the ledger's disk and folder writable for this user"),
    ("unable to open", "ledger_unreachable", "check the folder of the ledger and its rights"),
    ("authentication failed", "ledger_credentials", "correct user and password of PERENNIAL_DATABASE_URL"),
    ("not a database|disk image is malformed", "ledger_corrupt", "restore this file from a backup"),
)
"""Patterns of messages, the reason code they stand for, and the remedy."""


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


def _translated(engine: Engine, error: BaseException | None) -> InfrastructureError:
    text = _first_line(error)
    if "unable to open" in text and _is_in_read_only_folder(engine):
        text = f"its folder is read-only ({text})"
    message = f"the ledger at {location(engine)} refused: {text}"
    for pattern, reason_code, remedy in _PERMANENT:
        if re.search(pattern, text):
            return PermanentRunnerError(message, reason_code=reason_code, remedy=remedy)
    if re.search("is full|No space left", text):
        return TransientResourceError(message, reason_code="disk_full", remedy="free space on the disk")
    remedy = ""
    if engine.dialect.name != "sqlite":
        remedy = "see that this database exists and runs; PERENNIAL_DATABASE_URL names it"
    return TransientResourceError(message, reason_code="ledger_unavailable", remedy=remedy)


def _is_in_read_only_folder(engine: Engine) -> bool:
    """SQLite's readers write a file there; its error is only that it cannot open the ledger."""
    path = Path(str(engine.url.database))
    return engine.dialect.name == "sqlite" and path.is_file() and not os.access(path.parent, os.W_OK)


def _first_line(error: BaseException | None) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0]


class NoLedger(InvalidInput):
    """The database holds no ledger: nothing was ever started here."""

    reason_code = "ledger_schema"


def schema_mismatch(engine: Engine, found: str | None) -> InvalidInput:
    where, remedy = location(engine), "run `perennial migrate`, or let `perennial up` do it"
    if found is None:
        return NoLedger(f"there is no ledger at {where}", remedy=remedy)
    if found > HEAD:
        message = f"the ledger at {where} has schema {found}, newer than this program's {HEAD}"
        remedy = "upgrade this program, or point it at another database"
    else:
        message = f"the ledger at {where} has schema {found}, this program needs {HEAD}"
    return InvalidInput(message, reason_code="ledger_schema", remedy=remedy)


def half_migrated(engine: Engine, finding: str) -> InvalidInput:
    return InvalidInput(
        f"the ledger at {location(engine)} is half-migrated: {finding}",
        reason_code="ledger_schema",
        remedy="restore the database from its backup, or start with an empty one, then migrate again",
    )

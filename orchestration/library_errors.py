"""Errors of libraries that mean something to a person: a disk or a database that does not work.

Our own adapters classify what they meet; Dagster's storage and plain file writes have no adapter. Any other
error is a bug and keeps its stack trace.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator

from domain.shared.error import InfrastructureError, PerennialError

_SPACE = "free disk space below PERENNIAL_HOME; if there is enough, check the disk"
_RIGHTS = "make it writable for this user, or set PERENNIAL_HOME to another folder"
_RESTORE = (
    "restore the folder dagster below PERENNIAL_HOME from a backup, or move it away: it holds history only "
    "and is made anew"
)
_DATABASE = "check that the database exists and runs, and that PERENNIAL_DATABASE_URL is right"

_SQLITE = (
    ("is full", "disk_full", _SPACE),
    ("disk I/O error", "disk_full", _SPACE),
    ("readonly", "read_only", _RIGHTS),
    ("unable to open database", "read_only", _RIGHTS),
    ("not a database", "dagster_storage", _RESTORE),
    ("disk image is malformed", "dagster_storage", _RESTORE),
    ("no such table", "dagster_storage", _RESTORE),
)
"""By a part of SQLite's message: reason code and remedy."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST)


def typed_error(error: BaseException) -> PerennialError | None:
    """Return the typed error behind an error of a library or its causes, None for a bug."""
    return next((found for link in _chain(error) if (found := _classified(link))), None)


def _classified(error: BaseException) -> PerennialError | None:
    from sqlalchemy.exc import DBAPIError, OperationalError

    if isinstance(error, OSError):
        if error.errno in _FULL:
            return _error(f"no space left: {error}", "disk_full", _SPACE)
        if error.errno in _REFUSED and error.filename:
            return _error(f"{error.filename} cannot be written: {error.strerror}", "read_only", _RIGHTS)
    driver = error.orig if isinstance(error, DBAPIError) else error
    line = (str(driver).strip().splitlines() or ["no message"])[0]
    if isinstance(driver, sqlite3.Error):
        for part, reason_code, remedy in _SQLITE:
            if part in line:
                return _error(f"Dagster's storage below PERENNIAL_HOME failed: {line}", reason_code, remedy)
    if isinstance(error, OperationalError):
        return _error(f"Dagster's database refused: {line}", "dagster_storage", _DATABASE)
    return None


def _error(message: str, reason_code: str, remedy: str) -> PerennialError:
    return InfrastructureError(message, reason_code=reason_code, remedy=remedy)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__

"""What libraries raise when the outside fails under them, in our own words.

Our adapters classify what they meet; Dagster's storage has none. Whatever is not recognised here is a
bug, and keeps its stack trace.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator

from domain.shared.error import InfrastructureError, PerennialError

_ROOM = "free disk space below PERENNIAL_HOME; if there is enough, look at the disk"
_RIGHTS = "make it writable for this user, or set PERENNIAL_HOME to another folder"
_RESTORE = (
    "restore the folder dagster below PERENNIAL_HOME from a backup, or move it away: it holds history only "
    "and is made anew"
)
_DATABASE = "see that the database exists and runs, and that PERENNIAL_DATABASE_URL is right"

_SAYINGS = (
    ("is full", "disk_full", _ROOM),
    ("disk I/O error", "disk_full", _ROOM),
    ("readonly", "read_only", _RIGHTS),
    ("unable to open database", "read_only", _RIGHTS),
    ("not a database", "dagster_storage", _RESTORE),
    ("disk image is malformed", "dagster_storage", _RESTORE),
    ("no such table", "dagster_storage", _RESTORE),
)


def trouble(error: BaseException) -> PerennialError | None:
    """The trouble behind an exception of somebody else's, None if it is none we know."""
    from sqlalchemy.exc import DBAPIError, OperationalError

    for link in _chain(error):
        found: PerennialError | None = None
        if isinstance(link, sqlite3.Error):
            found = _of_sqlite(link)
        elif isinstance(link, OSError):
            found = _of_the_disk(link)
        elif isinstance(link, DBAPIError) and isinstance(link.orig, sqlite3.Error):
            found = _of_sqlite(link.orig)
        elif isinstance(link, OperationalError):
            said = _first_line(link.orig)
            found = _told(f"Dagster's database refused: {said}", "dagster_storage", _DATABASE)
        if found is not None:
            return found
    return None


def _of_sqlite(error: sqlite3.Error) -> PerennialError | None:
    said = _first_line(error)
    for saying, code, remedy in _SAYINGS:
        if saying in said:
            return _told(f"Dagster's storage below PERENNIAL_HOME failed: {said}", code, remedy)
    return None


def _of_the_disk(error: OSError) -> PerennialError | None:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _told(f"no space left: {error}", "disk_full", _ROOM)
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM) and error.filename:
        return _told(f"the disk refuses: {error}", "read_only", _RIGHTS)
    return None


def _told(message: str, reason_code: str, remedy: str) -> PerennialError:
    return InfrastructureError(message, reason_code=reason_code, remedy=remedy)


def _first_line(error: BaseException | None) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__

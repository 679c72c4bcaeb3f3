"""One writer per table: a file lock on one machine, an advisory lock where the catalog is Postgres.

Both are freed by the operating system or the server when their holder dies.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from resources.lake.error import LakeBusy

if TYPE_CHECKING:
    from filelock import BaseFileLock

WAIT_SECONDS = 120.0
RUNGS = 4
POLL_SECONDS = 0.002
_REMEDY = "another process is writing this table; try again, or look for a stuck run"


class Locks(Protocol):
    def lease(self, name: str) -> AbstractContextManager[None]:
        """Hold the lock of this name, waiting a bounded time for it."""


class FileLocks:
    """A file per table, and a short queue before it.

    Who waits looks again and again, and between two looks a busy writer would give the lock away and have it
    back: with four writers one waited for 2.7 s. So everybody comes up a ladder of locks, holding one rung
    until the next is free: the first `RUNGS` who wait are served in their order.
    """

    def __init__(self, folder: Path, wait_seconds: float = WAIT_SECONDS) -> None:
        self._folder = folder
        self._wait = wait_seconds

    @contextmanager
    def lease(self, name: str) -> Iterator[None]:
        from filelock import Timeout

        self._folder.mkdir(parents=True, exist_ok=True)
        until = monotonic() + self._wait
        with ExitStack() as held:
            try:
                for rung in range(RUNGS, -1, -1):
                    higher = self._lock(name, rung)
                    higher.acquire(timeout=max(until - monotonic(), 0), poll_interval=POLL_SECONDS)
                    held.close()  # the rung below
                    held.callback(higher.release)
            except Timeout as error:
                raise LakeBusy(f"{name}: not free within {self._wait:.0f} s", remedy=_REMEDY) from error
            yield

    def _lock(self, name: str, rung: int) -> BaseFileLock:
        from filelock import FileLock

        # A fresh object each time: its lock then excludes threads of this process as well.
        return FileLock(self._folder / (f"{name}.lock" if rung == 0 else f"{name}.queue-{rung}.lock"))


class PostgresLocks:
    """Session-level advisory locks, each on its own connection so that a lost one frees the lock."""

    def __init__(self, dsn: str, wait_seconds: float = WAIT_SECONDS) -> None:
        self._dsn = dsn
        self._wait = wait_seconds

    @contextmanager
    def lease(self, name: str) -> Iterator[None]:
        import psycopg2
        import psycopg2.errors

        number = int.from_bytes(
            blake2b(f"perennial:{name}".encode(), digest_size=8).digest(), "big", signed=True
        )
        try:
            connection = psycopg2.connect(self._dsn, options=f"-c lock_timeout={int(self._wait * 1000)}")
        except psycopg2.OperationalError as error:
            raise LakeBusy(f"{name}: the catalog's database cannot be reached for a lock") from error
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                try:
                    cursor.execute("SELECT pg_advisory_lock(%s)", (number,))
                except psycopg2.errors.LockNotAvailable as error:
                    raise LakeBusy(f"{name}: not free within {self._wait:.0f} s", remedy=_REMEDY) from error
            yield
        finally:
            connection.close()

"""One writer per table: a file lock on one machine, an advisory lock where the catalog is Postgres.

Both are freed by the operating system or the server when their holder dies.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from pathlib import Path
from time import monotonic

from resources.lake.error import LakeBusy
from resources.lake.location import LakeLocation

WAIT_SECONDS = 120.0
QUEUE = 4
POLL_SECONDS = 0.002
_REMEDY = "another process is writing this table; try again, or find the stuck run"


class FileLocks:
    """A file per table, and a short queue before it.

    A waiting process polls, and between two polls a busy writer would release the lock and have it again:
    with four writers one waited for 2.7 s. So each comes through a row of locks, holding one until the next
    is free: the first `QUEUE` that wait are served in their order.
    """

    def __init__(self, folder: Path, wait_seconds: float = WAIT_SECONDS) -> None:
        self._folder = folder
        self._wait = wait_seconds

    @contextmanager
    def lease(self, name: str) -> Iterator[None]:
        """Hold the lock of this name, waiting a bounded time for it."""
        from filelock import FileLock, Timeout

        self._folder.mkdir(parents=True, exist_ok=True)
        until = monotonic() + self._wait
        with ExitStack() as held:
            try:
                for file in (*(f"{name}.queue-{n}.lock" for n in range(QUEUE, 0, -1)), f"{name}.lock"):
                    # A fresh object each time: its lock then excludes threads of this process as well.
                    lock = FileLock(self._folder / file)
                    lock.acquire(timeout=max(until - monotonic(), 0), poll_interval=POLL_SECONDS)
                    held.close()  # releases the one before
                    held.callback(lock.release)
            except Timeout as error:
                raise LakeBusy(f"{name}: not free within {self._wait:.0f} s", remedy=_REMEDY) from error
            yield


class PostgresLocks:
    """Session-level advisory locks, each on its own connection so that a lost one frees the lock."""

    def __init__(self, dsn: str, wait_seconds: float = WAIT_SECONDS) -> None:
        self._dsn = dsn
        self._wait = wait_seconds

    @contextmanager
    def lease(self, name: str) -> Iterator[None]:
        import psycopg2
        import psycopg2.errors

        digest = blake2b(f"perennial:{name}".encode(), digest_size=8).digest()
        number = int.from_bytes(digest, "big", signed=True)
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


Locks = FileLocks | PostgresLocks


def table_locks(where: LakeLocation) -> Locks:
    return FileLocks(where.locks) if where.kind == "sqlite" else PostgresLocks(where.postgres_dsn)

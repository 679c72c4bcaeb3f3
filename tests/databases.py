"""Homes that follow one another at one path, in one process."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.pool import Pool


@contextmanager
def closed_afterwards() -> Iterator[None]:
    """Close every database connection that was opened meanwhile.

    A command leaves that to the end of its process. Here the process goes on, and SQLite removes its
    write-ahead log when the collector closes a connection, even while a test deletes the home.
    """
    opened: list[Any] = []

    def note(connection: Any, _: object) -> None:
        opened.append(connection)

    event.listen(Pool, "connect", note)
    try:
        yield
    finally:
        event.remove(Pool, "connect", note)
        for connection in opened:
            connection.close()


def clear(folder: Path) -> None:
    """Delete the folder, also while a process has a file of it open."""
    if folder.exists():
        aside = Path(tempfile.mkdtemp(prefix="gone-", dir=folder.parent))
        folder.rename(aside / folder.name)
        shutil.rmtree(aside, ignore_errors=True)

"""Homes that stand one after another at one path, in one process."""

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
    """Closes every database connection that was opened meanwhile.

    A command leaves that to the end of its process. Here the process goes on, and SQLite, closing a
    connection whenever the collector comes by, removes the write-ahead log: under the hands of whoever
    removes the home meanwhile.
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


def clear(place: Path) -> None:
    """Whatever still holds a file of it, what comes next finds the place empty."""
    if place.exists():
        aside = Path(tempfile.mkdtemp(prefix="gone-", dir=place.parent))
        place.rename(aside / place.name)
        shutil.rmtree(aside, ignore_errors=True)

"""A furnished office is made once and copied. The catalogue holds absolute paths: all stand in one place."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.pool import Pool

from tests.integration.carbon.office import Office


@contextmanager
def closed_afterwards() -> Iterator[None]:
    """Closes every database connection that was opened meanwhile.

    A command leaves that to the end of its process. Here the process goes on, and SQLite, closing a
    connection whenever the collector comes by, removes the write-ahead log of that *path*: by then
    another office stands there.
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


@contextmanager
def cleared(place: Path) -> Iterator[None]:
    """Whatever happens, the next office finds the place empty."""
    try:
        with closed_afterwards():
            yield
    finally:
        gone = place.rename(place.with_name("gone"))
        shutil.rmtree(gone)


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("carbon") / "office"


@pytest.fixture(scope="session")
def furnished(place: Path) -> Path:
    with closed_afterwards(), pytest.MonkeyPatch.context() as patch:
        place.mkdir()
        Office(place, patch).furnish()
    return place.rename(place.with_name("furnished"))


@pytest.fixture
def empty_office(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    place.mkdir()
    with cleared(place):
        yield Office(place, monkeypatch)


@pytest.fixture
def office(place: Path, furnished: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    """A year with its report; nothing is due."""
    shutil.copytree(furnished, place)
    with cleared(place):
        yield Office(place, monkeypatch)

"""A furnished office is made once and copied. The catalogue holds absolute paths: all stand in one place."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.databases import clear, closed_afterwards
from tests.integration.carbon.office import Office


@contextmanager
def cleared(place: Path) -> Iterator[None]:
    try:
        with closed_afterwards():
            yield
    finally:
        clear(place)


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

"""A furnished office is made once and copied. The catalogue holds absolute paths: all stand in one place."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.carbon.office import Office


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("carbon") / "office"


@pytest.fixture(scope="session")
def furnished(place: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        place.mkdir()
        Office(place, patch).furnish()
    return place.rename(place.with_name("furnished"))


@pytest.fixture
def empty_office(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    place.mkdir()
    yield Office(place, monkeypatch)
    shutil.rmtree(place)


@pytest.fixture
def office(place: Path, furnished: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    """A year with its report; nothing is due."""
    shutil.copytree(furnished, place)
    yield Office(place, monkeypatch)
    shutil.rmtree(place)

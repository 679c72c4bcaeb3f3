"""Real processes over the embedded catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.resources.lake.races import LakeRaces


class TestRacesOnSqlite(LakeRaces):
    @pytest.fixture
    def catalog_url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/catalog.db"

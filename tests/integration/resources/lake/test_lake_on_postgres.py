"""The lake's behaviour, and its races, with a catalog in a real Postgres."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.lake.client import Lake
from tests.unit.resources.lake.frames import TABLES, Lakes
from tests.unit.resources.lake.races import LakeRaces
from tests.unit.resources.lake.test_lake_behaviour import CatalogBehaviour


class TestLakeOnPostgres(CatalogBehaviour):
    @pytest.fixture
    def lakes(self, tmp_path: Path, postgres_database: str) -> Lakes:
        def make(fresh_home: bool = False, tables: Any = TABLES) -> Lake:
            return Lake(
                catalog_url=postgres_database,
                warehouse=f"{tmp_path}/warehouse",
                home=tmp_path / "elsewhere" if fresh_home else tmp_path,
                tables=tables,
            )

        return make


class TestRacesOnPostgres(LakeRaces):
    @pytest.fixture
    def catalog_url(self, postgres_database: str) -> str:
        return postgres_database

"""The lake's behaviour, and its races, with a catalog in a real Postgres."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resources.lake.client import Lake
from resources.lake.error import ForeignWarehouse
from resources.lake.ownership import MARK
from tests.unit.lake.behaviour import LakeBehaviour
from tests.unit.lake.environments import Environments, OneWarehouse
from tests.unit.lake.frames import TABLES, Lakes, prices
from tests.unit.lake.races import LakeRaces


class TestLakeOnPostgres(LakeBehaviour):
    @pytest.fixture
    def lakes(self, tmp_path: Path, postgres_database: str) -> Lakes:
        def make(fresh_home: bool = False, tables: Any = TABLES) -> Lake:
            return Lake.open(
                catalog_url=postgres_database,
                warehouse=f"{tmp_path}/warehouse",
                home=tmp_path / "elsewhere" if fresh_home else tmp_path,
                tables=tables,
            )

        return make


class TestOneWarehouseOnPostgres(OneWarehouse):
    """Production beside an embedded environment that was given the same warehouse."""

    @pytest.fixture
    def catalogs(self, tmp_path: Path, postgres_database: str) -> dict[str, str]:
        return {"one": postgres_database, "two": f"sqlite:///{tmp_path}/two/catalog.db"}

    def test_the_mark_names_the_database_and_not_who_may_open_it(
        self, environments: Environments, warehouse: Path, catalogs: dict[str, str]
    ) -> None:
        catalogs["one"] = catalogs["one"].replace("perennial@", "perennial:hunter2@")
        environments("one").replace("market.prices", "2026-11-16", prices("2026-11-16"))
        database = catalogs["one"].split("@/")[1].split("?")[0]
        mark = json.loads((warehouse / MARK).read_bytes())
        assert mark["catalog"] == f"postgresql://localhost:5432/{database}"
        assert "hunter2" not in (warehouse / MARK).read_text()
        with pytest.raises(ForeignWarehouse, match=database) as caught:
            environments("two").replace("market.prices", "2026-11-16", prices("2026-11-16"))
        assert "hunter2" not in f"{caught.value.message}{caught.value.remedy}"


class TestRacesOnPostgres(LakeRaces):
    @pytest.fixture
    def catalog_url(self, postgres_database: str) -> str:
        return postgres_database

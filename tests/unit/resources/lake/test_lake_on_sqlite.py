"""The lake's behaviour with its embedded catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.lake.client import Lake
from tests.unit.resources.lake.behaviour import LakeBehaviour
from tests.unit.resources.lake.frames import TABLES, Lakes


class TestLakeOnSqlite(LakeBehaviour):
    @pytest.fixture
    def lakes(self, tmp_path: Path) -> Lakes:
        def make(fresh_home: bool = False, tables: Any = TABLES) -> Lake:
            return Lake.open(
                catalog_url=f"sqlite:///{tmp_path}/lake/catalog.db",
                warehouse=f"file://{tmp_path}/lake/warehouse",
                home=tmp_path / "elsewhere" if fresh_home else tmp_path,
                tables=tables,
            )

        return make

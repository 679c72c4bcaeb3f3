"""Two environments that were given one warehouse. Subclasses give `catalogs`: the address of each one's
catalog by its name."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from domain.shared.table import ALL
from resources.lake.client import Lake
from resources.lake.error import ForeignWarehouse
from resources.lake.ownership import MARK
from resources.lake.settings import IDENTITY_TABLE
from tests.unit.lake.frames import BY_KIND, DAILY, TABLES, papers, prices, stocks

MON, TUE = "2026-11-16", "2026-11-17"
SETTINGS = ("PERENNIAL_WAREHOUSE", "PERENNIAL_HOME", "PERENNIAL_CATALOG_URL", "PERENNIAL_DATABASE_URL")

Environments = Callable[[str], Lake]


def content(warehouse: Path) -> dict[str, bytes]:
    """Every file, byte for byte."""
    return {str(p.relative_to(warehouse)): p.read_bytes() for p in warehouse.rglob("*") if p.is_file()}


def grow_old(warehouse: Path) -> None:
    then = (datetime.now(UTC) - timedelta(days=3)).timestamp()
    for path in warehouse.rglob("*"):
        os.utime(path, (then, then))


def without_marks(lake: Lake, warehouse: Path) -> None:
    """As a program left it that knew no marks."""
    (warehouse / MARK).unlink(missing_ok=True)
    with lake._writer.catalog.open().engine.begin() as connection:
        connection.execute(sa.text(f"DROP TABLE IF EXISTS {IDENTITY_TABLE}"))


def written_without_asking(lake: Lake) -> None:
    """Tables of this environment in the warehouse, made as a program did that knew no marks."""
    stored = lake._writer.catalog.create(DAILY)
    stored.append(prices(TUE).cast(DAILY.schema))


class OneWarehouse:
    @pytest.fixture
    def warehouse(self, tmp_path: Path) -> Path:
        return tmp_path / "warehouse"

    @pytest.fixture
    def environments(self, tmp_path: Path, warehouse: Path, catalogs: Mapping[str, str]) -> Environments:
        def opened(name: str) -> Lake:
            return Lake.open(
                catalog_url=catalogs[name],
                warehouse=str(warehouse),
                home=tmp_path / f"home-{name}",
                tables=TABLES,
            )

        return opened

    def test_the_first_to_write_owns_it_and_the_other_is_refused(
        self, environments: Environments, warehouse: Path
    ) -> None:
        environments("one").replace("market.prices", MON, prices(MON))
        before = content(warehouse)
        other = environments("two")
        for write in (
            lambda: other.replace("market.prices", MON, prices(MON, scale=2)),
            lambda: other.merge("market.stocks", stocks(a="x")),
        ):
            with pytest.raises(ForeignWarehouse, match=rf"{warehouse} belongs to another catalog") as caught:
                write()
            assert [s for s in SETTINGS if s not in caught.value.remedy] == []
        with pytest.raises(ForeignWarehouse):
            other.check_warehouse()
        assert content(warehouse) == before
        assert other.partitions("market.prices") == [], "looking is as it was: nothing of the other's is seen"
        environments("one").replace("market.prices", TUE, prices(TUE))
        assert environments("one").partitions("market.prices") == [MON, TUE]

    @pytest.mark.parametrize(("owner", "other"), [("one", "two"), ("two", "one")])
    def test_the_care_of_one_leaves_every_file_of_the_other(
        self, environments: Environments, warehouse: Path, owner: str, other: str
    ) -> None:
        mine, strange = environments(owner), environments(other)
        mine.replace("market.prices", MON, prices(MON))
        written_without_asking(strange)
        grow_old(warehouse)
        before = content(warehouse)
        later = datetime.now(UTC) + timedelta(days=30)
        with pytest.raises(ForeignWarehouse, match="belongs to another catalog") as caught:
            strange.maintain("market.prices", now=later, compact_before="2027-01")
        assert f"delete file://{warehouse / MARK}" in caught.value.remedy
        assert content(warehouse) == before
        assert environments(owner).version("market.prices", MON).rows == 4

    def test_a_warehouse_from_before_marks_belongs_to_whose_tables_are_there(
        self, environments: Environments, warehouse: Path
    ) -> None:
        lake = environments("one")
        lake.replace("market.prices", MON, prices(MON))
        without_marks(lake, warehouse)
        for ask in (Lake.check_warehouse, lambda o: o.replace("market.prices", MON, prices(MON))):
            with pytest.raises(ForeignWarehouse, match=r"holds tables .* such as .*metadata\.json") as caught:
                ask(environments("two"))
            assert "empty the warehouse" in caught.value.remedy
        assert not (warehouse / MARK).exists()
        environments("one").check_warehouse()
        assert not (warehouse / MARK).exists(), "a look makes no mark"
        environments("one").replace("market.prices", TUE, prices(TUE))
        assert (warehouse / MARK).exists()
        with pytest.raises(ForeignWarehouse, match="belongs to another"):
            environments("two").replace("market.prices", MON, prices(MON))

    def test_the_nights_care_marks_what_has_no_mark(
        self, environments: Environments, warehouse: Path
    ) -> None:
        lake = environments("one")
        lake.replace("market.prices", MON, prices(MON))
        without_marks(lake, warehouse)
        environments("one").maintain("market.prices", now=datetime.now(UTC), compact_before=None)
        assert (warehouse / MARK).exists()

    def test_the_mark_is_asked_once_by_writes_and_always_by_the_care(
        self, environments: Environments, warehouse: Path
    ) -> None:
        lake = environments("one")
        lake.replace("market.prices", MON, prices(MON))
        mark = json.loads((warehouse / MARK).read_bytes())
        (warehouse / MARK).write_text(json.dumps({**mark, "identity": "another's"}))
        assert lake.replace("market.prices", TUE, prices(TUE)).changed
        with pytest.raises(ForeignWarehouse):
            lake.maintain("market.prices", now=datetime.now(UTC), compact_before=None)
        with pytest.raises(ForeignWarehouse):
            environments("one").replace("market.prices", TUE, prices(TUE, scale=2))

    def test_a_mark_given_away_by_hand_is_the_next_writers(
        self, environments: Environments, warehouse: Path
    ) -> None:
        """What the remedy says of a catalog that is lost for good, where this one has tables."""
        environments("one").replace("market.stocks", ALL, stocks(a="x"))
        written_without_asking(environments("two"))
        (warehouse / MARK).unlink()
        environments("two").replace("market.prices", MON, prices(MON))
        with pytest.raises(ForeignWarehouse):
            environments("one").merge("market.stocks", stocks(b="y"))

    def test_an_emptied_warehouse_is_marked_anew(self, environments: Environments, warehouse: Path) -> None:
        lake = environments("one")
        lake.replace("market.prices", MON, prices(MON))
        for path in sorted(warehouse.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        environments("one").replace("refs.papers", "a", papers((1, "a", "x")))
        assert (warehouse / MARK).exists()
        assert environments("one").partitions(BY_KIND.name) == ["a"]

"""A home that is elsewhere than where it was made: told clearly, unless it is only called by another name."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.shared.table import ALL
from resources.lake.client import Lake
from resources.lake.error import MovedWarehouse
from resources.lake.moved import UnmovedPointers
from resources.lake.store import LocalStore, ObjectStore, Store
from tests.unit.lake.environments import content, grow_old
from tests.unit.lake.frames import TABLES, on_files, prices, stocks

MON, TUE = "2026-11-16", "2026-11-17"
LATER = datetime.now(UTC) + timedelta(days=30)

ACTS: dict[str, Callable[[Lake], object]] = {
    "query": lambda lake: lake.query("SELECT * FROM market.prices"),
    "sql": lambda lake: lake.sql("SELECT 1"),
    "scan": lambda lake: lake.scan("market.prices").read_all(),
    "versions": lambda lake: lake.versions("market.prices", [MON]),
    "write": lambda lake: lake.replace("market.prices", TUE, prices(TUE)),
    "write another table": lambda lake: lake.merge("market.stocks", stocks(b="y")),
    "care": lambda lake: lake.maintain("market.prices", now=LATER, compact_before="2027-01"),
    "check": lambda lake: lake.check_warehouse(),
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    on_files(tmp_path / "home").replace("market.prices", MON, prices(MON))
    return tmp_path / "home"


def works(home: Path) -> None:
    """Reading by both ways, writing and care, in that order."""
    lake = on_files(home)
    rows = lake.version("market.prices", MON).rows
    assert rows == lake.query("SELECT * FROM market.prices WHERE trade_date = ?", params=[MON]).num_rows > 0
    assert lake.sql("SELECT * FROM market.prices").num_rows > 0
    scale = 1 + len(lake.partitions("market.prices"))
    assert lake.replace_range("market.prices", [MON, TUE], prices(MON, TUE, scale=scale)).changed
    lake.merge("market.stocks", stocks(a="x"))
    lake.maintain("market.prices", now=LATER, compact_before="2027-01")
    assert on_files(home).version("market.prices", TUE).rows == 4
    assert on_files(home).version("market.stocks", ALL).rows == 1


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("original", ["gone", "still there"])
def test_a_home_elsewhere_is_told_and_nothing_is_changed(home: Path, original: str, act: str) -> None:
    elsewhere = home.parent / "elsewhere"
    (shutil.move if original == "gone" else shutil.copytree)(home, elsewhere)
    grow_old(home)
    grow_old(elsewhere)
    before = content(home), content(elsewhere / "lake" / "warehouse")
    with pytest.raises(MovedWarehouse) as caught:
        ACTS[act](on_files(elsewhere))
    made, now = f"{home}/lake/warehouse", f"{elsewhere}/lake/warehouse"
    assert f"was made at {made} and is now looked for at {now}" in caught.value.message
    assert f"make {made} a link to it" in caught.value.remedy
    assert f"PERENNIAL_WAREHOUSE={made}" in caught.value.remedy
    assert (content(home), content(elsewhere / "lake" / "warehouse")) == before


def test_a_home_moved_back_works(home: Path) -> None:
    elsewhere = home.parent / "elsewhere"
    shutil.move(home, elsewhere)
    shutil.move(elsewhere, home)
    works(home)


def test_a_link_left_in_the_old_place_is_enough(home: Path) -> None:
    """The remedy keeps its word."""
    elsewhere = home.parent / "elsewhere"
    shutil.move(home, elsewhere)
    home.symlink_to(elsewhere)
    works(elsewhere)
    works(home)


def test_one_home_under_two_names_works_under_both(tmp_path: Path) -> None:
    real, link = tmp_path / "private" / "home", tmp_path / "home"
    real.mkdir(parents=True)
    link.symlink_to(real)
    on_files(link).replace("market.prices", MON, prices(MON))
    works(real)
    works(link)
    shutil.rmtree(real / "lake")
    on_files(real).replace("market.prices", MON, prices(MON))
    works(link)
    works(real)


def test_a_way_around_is_the_same_place(home: Path) -> None:
    works(home / ".." / home.name)


def test_a_link_to_another_place_is_another_place(home: Path) -> None:
    link = home.parent / "link"
    shutil.copytree(home, home.parent / "copy")
    link.symlink_to(home.parent / "copy")
    with pytest.raises(MovedWarehouse):
        on_files(link).partitions("market.prices")


class At:
    """A catalog in which tables are at these places."""

    def __init__(self, **places: str) -> None:
        self.places = {name.replace("_", ".", 1): place for name, place in places.items()}

    def read(self) -> dict[str, str]:
        return self.places

    def identity(self) -> str | None:
        return None


def looked_for(warehouse: str, store: Store, **places: str) -> dict[str, str]:
    tables = [table.name for table in TABLES]
    return UnmovedPointers(At(**places), store, warehouse, tables).read()


METADATA = "market/prices/metadata/00001-x.metadata.json"


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_bucket_is_known_by_its_name_alone(scheme: str) -> None:
    looked_for("s3://bucket/lake", ObjectStore(), market_prices=f"{scheme}://bucket/lake/{METADATA}")
    with pytest.raises(
        MovedWarehouse, match=r"made at s3.?://old/lake and is now .* s3://bucket/lake"
    ) as caught:
        looked_for("s3://bucket/lake", ObjectStore(), market_prices=f"{scheme}://old/lake/{METADATA}")
    assert "link" not in caught.value.remedy


@pytest.mark.parametrize(
    ("warehouse", "location"),
    [
        ("s3://bucket/lake", f"file:///old/lake/{METADATA}"),
        ("file:///old/lake", f"s3://bucket/lake/{METADATA}"),
        ("s3://bucket/lake", f"s3://bucket/lake-of-others/{METADATA}"),
        ("file:///old/lake", f"file:///old/lake-of-others/{METADATA}"),
    ],
)
def test_another_store_or_a_longer_name_is_another_place(warehouse: str, location: str) -> None:
    store = ObjectStore() if warehouse.startswith("s3") else LocalStore()
    with pytest.raises(MovedWarehouse):
        looked_for(warehouse, store, market_prices=location)


def test_tables_of_other_engines_may_be_anywhere(tmp_path: Path) -> None:
    places = {"strange_table": "s3://elsewhere/strange/table/metadata/1.metadata.json"}
    assert looked_for(f"file://{tmp_path}", LocalStore(), **places) == {
        "strange.table": places["strange_table"]
    }

"""Whose warehouse it is, with embedded catalogs; and what becomes of the mark in the hands of operators."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from domain.shared.error import InfrastructureError
from resources.lake.catalog import Catalog, default_locks
from resources.lake.client import Lake
from resources.lake.error import ForeignWarehouse, LakeUnwritable
from resources.lake.ownership import MARK, Ownership
from resources.lake.pointer import pointers_for
from resources.lake.settings import Place
from resources.lake.store import LocalStore, ObjectStore, Store
from tests.unit.lake.environments import OneWarehouse, content, grow_old
from tests.unit.lake.frames import TABLES, on_files, prices

MON, TUE = "2026-11-16", "2026-11-17"


class TestOneWarehouseOnSqlite(OneWarehouse):
    @pytest.fixture
    def catalogs(self, tmp_path: Path) -> dict[str, str]:
        return {name: f"sqlite:///{tmp_path}/{name}/catalog.db" for name in ("one", "two")}


def warehouse(home: Path) -> Path:
    return home / "lake" / "warehouse"


def catalog(home: Path) -> Path:
    return home / "lake" / "catalog.db"


def backup(of: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(of)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)


def lose(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def test_the_mark_says_whose_and_where_in_words(tmp_path: Path) -> None:
    on_files(tmp_path).replace("market.prices", MON, prices(MON))
    mark = json.loads((warehouse(tmp_path) / MARK).read_bytes())
    assert mark["warehouse"] == f"file://{warehouse(tmp_path)}"
    assert mark["catalog"] == f"sqlite:///{catalog(tmp_path)}"
    assert [p.name for p in warehouse(tmp_path).iterdir() if p.is_file()] == [MARK], "no scratch file is left"


def test_a_catalogue_restored_from_a_backup_is_the_same_one(tmp_path: Path) -> None:
    lake = on_files(tmp_path)
    lake.replace("market.prices", MON, prices(MON))
    backup(catalog(tmp_path), tmp_path / "backup.db")
    lake.replace("market.prices", TUE, prices(TUE))
    lose(catalog(tmp_path))
    backup(tmp_path / "backup.db", catalog(tmp_path))
    restored = on_files(tmp_path)
    assert restored.partitions("market.prices") == [MON]
    restored.replace("market.prices", TUE, prices(TUE))
    restored.maintain("market.prices", now=datetime.now(UTC), compact_before=None)


def test_a_lost_catalogue_begins_anew_only_when_a_person_says_so(tmp_path: Path) -> None:
    """Nothing tells it from a second environment; its history would be deleted for good within days."""
    on_files(tmp_path).replace("market.prices", MON, prices(MON))
    lose(catalog(tmp_path))
    grow_old(warehouse(tmp_path))
    before = content(warehouse(tmp_path))
    anew = on_files(tmp_path)
    for _ in range(2):  # the first try must not make the second one easier
        with pytest.raises(ForeignWarehouse, match="belongs to another catalog") as caught:
            anew.replace("market.prices", MON, prices(MON))
        assert "empty the warehouse" in caught.value.remedy
    (warehouse(tmp_path) / MARK).unlink()
    with pytest.raises(ForeignWarehouse, match="holds tables"):
        anew.replace("market.prices", MON, prices(MON))
    assert content(warehouse(tmp_path)) == {n: b for n, b in before.items() if n != MARK}
    shutil.rmtree(warehouse(tmp_path))
    anew.replace("market.prices", MON, prices(MON))
    assert on_files(tmp_path).partitions("market.prices") == [MON]


def test_a_lost_lake_begins_anew_by_itself(tmp_path: Path) -> None:
    on_files(tmp_path).replace("market.prices", MON, prices(MON))
    shutil.rmtree(tmp_path / "lake")
    on_files(tmp_path).replace("market.prices", MON, prices(MON))


def test_emptied_tables_are_told_as_ever(tmp_path: Path) -> None:
    on_files(tmp_path).replace("market.prices", MON, prices(MON))
    shutil.rmtree(warehouse(tmp_path))
    with pytest.raises(InfrastructureError, match=r"metadata file .* is missing"):
        on_files(tmp_path).replace("market.prices", TUE, prices(TUE))


def test_a_crash_between_identity_and_mark_is_no_harm(tmp_path: Path) -> None:
    lake = on_files(tmp_path)
    lake._writer.catalog.identify()
    assert not warehouse(tmp_path).exists()
    on_files(tmp_path).replace("market.prices", MON, prices(MON))
    on_files(tmp_path).check_warehouse()


def over(home: Path, catalog_file: Path) -> Lake:
    return Lake.open(
        catalog_url=f"sqlite:///{catalog_file}",
        warehouse=str(warehouse(home)),
        home=catalog_file.parent,
        tables=TABLES,
    )


def test_a_copy_of_the_catalogue_is_refused_while_the_original_is_there(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy" / "catalog.db"
    on_files(home).replace("market.prices", MON, prices(MON))
    backup(catalog(home), copy)
    on_files(home).replace("market.prices", TUE, prices(TUE))
    grow_old(warehouse(home))
    before = content(warehouse(home))
    copied = over(home, copy)
    assert copied.partitions("market.prices") == [MON]
    for act in (
        lambda: copied.replace("market.prices", TUE, prices(TUE, scale=2)),
        lambda: copied.maintain("market.prices", now=datetime.now(UTC), compact_before=None),
        copied.check_warehouse,
    ):
        with pytest.raises(ForeignWarehouse, match=rf"{catalog(home)}, of which {copy} is a copy"):
            act()
    assert content(warehouse(home)) == before


@pytest.mark.parametrize("instead", ["nothing", "rubbish", "another catalogue"])
def test_a_catalogue_that_was_moved_may_go_on(tmp_path: Path, instead: str) -> None:
    home, moved = tmp_path / "home", tmp_path / "moved" / "catalog.db"
    on_files(home).replace("market.prices", MON, prices(MON))
    backup(catalog(home), moved)
    lose(catalog(home))
    if instead == "rubbish":
        catalog(home).write_bytes(b"this is no database" * 500)
    elif instead == "another catalogue":
        on_files(home)._writer.catalog.identify()
    over(home, moved).replace("market.prices", TUE, prices(TUE))


@pytest.mark.parametrize("found", [b"", b"[]", b"{}", b'{"identity": "x"}', b"\xff"])
def test_a_mark_that_cannot_be_understood_stops_everything_that_changes(tmp_path: Path, found: bytes) -> None:
    on_files(tmp_path).replace("market.prices", MON, prices(MON))
    (warehouse(tmp_path) / MARK).write_bytes(found)
    with pytest.raises(ForeignWarehouse, match=rf"{MARK} cannot be understood") as caught:
        on_files(tmp_path).maintain("market.prices", now=datetime.now(UTC), compact_before=None)
    assert "delete the file" in caught.value.remedy
    assert on_files(tmp_path).partitions("market.prices") == [MON]


def test_a_warehouse_that_refuses_the_mark_is_unwritable(tmp_path: Path) -> None:
    """In a folder where not even root may make one."""
    lake = Lake.open(
        catalog_url=f"sqlite:///{tmp_path}/catalog.db",
        warehouse="/sys/perennial",
        home=tmp_path,
        tables=TABLES,
    )
    with pytest.raises(LakeUnwritable):
        lake.replace("market.prices", MON, prices(MON))


# The stores


def stores(folder: Path) -> dict[str, tuple[Store, str]]:
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    (folder / "bucket").mkdir()
    return {
        "files": (LocalStore(), f"file://{folder}/bucket/{MARK}"),
        "objects": (ObjectStore(SubTreeFileSystem(str(folder), LocalFileSystem())), f"s3://bucket/{MARK}"),
    }


@pytest.mark.parametrize("kind", ["files", "objects"])
def test_what_is_created_once_stays_as_it_is(tmp_path: Path, kind: str) -> None:
    store, uri = stores(tmp_path)[kind]
    store.create(uri, b"first")
    store.create(uri, b"second")
    assert store.read(uri) == b"first"
    assert [p.name for p in (tmp_path / "bucket").iterdir()] == [MARK]


def test_a_file_system_without_hard_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    uri = f"file://{tmp_path}/{MARK}"
    LocalStore().create(uri, b"first")
    LocalStore().create(uri, b"second")
    assert LocalStore().read(uri) == b"first"


class LastWins(LocalStore):
    """A store without exclusive creation, in which another environment comes between."""

    def __init__(self, another: bytes) -> None:
        self.another = another

    def create(self, uri: str, content: bytes) -> None:
        super().create(uri, content)
        Path(uri.removeprefix("file://")).write_bytes(self.another)


def test_whoever_is_overtaken_while_marking_finds_out(tmp_path: Path) -> None:
    another = b'{"identity": "another", "catalog": "postgresql://db:5432/other", "warehouse": ""}'
    place = Place.of(f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "warehouse"), tmp_path)
    locks = default_locks(place)
    ownership = Ownership(place, LastWins(another), pointers_for(place), Catalog(place, locks), locks)
    with pytest.raises(ForeignWarehouse, match="the one at postgresql://db:5432/other"):
        ownership.ensure()

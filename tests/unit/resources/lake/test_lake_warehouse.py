"""Which warehouse a catalogue may use: moved and copied homes, restored and lost catalogues."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.shared.error import InfrastructureError, TransientResourceError
from resources.lake.catalog_reader import SqliteCatalogReader
from resources.lake.client import Lake
from resources.lake.error import ForeignWarehouse, LakeUnwritable, MovedWarehouse
from tests.unit.resources.lake.frames import TABLES, on_files, prices

MON, TUE = "2026-11-16", "2026-11-17"
LATER = datetime.now(UTC) + timedelta(days=30)

ACTS: tuple[Callable[[Lake], object], ...] = (
    lambda lake: lake.query("SELECT * FROM market.prices"),
    lambda lake: lake.sql("SELECT 1"),
    lambda lake: lake.versions("market.prices", [MON]),
    lambda lake: lake.replace("market.prices", TUE, prices(TUE)),
    lambda lake: lake.maintain("market.prices", now=LATER, compact_before="2027-01"),
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    on_files(tmp_path / "home").replace("market.prices", MON, prices(MON))
    return tmp_path / "home"


def catalog(home: Path) -> Path:
    return home / "lake" / "catalog.db"


def files(home: Path) -> dict[str, bytes]:
    warehouse = home / "lake" / "warehouse"
    return {str(p.relative_to(warehouse)): p.read_bytes() for p in warehouse.rglob("*") if p.is_file()}


def backup(of: Path, to: Path) -> None:
    with closing(sqlite3.connect(of)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)


def lose(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


@pytest.mark.parametrize("original", ["gone", "still there"])
def test_use_lake__home_moved_or_copied__is_refused_and_changes_nothing(home: Path, original: str) -> None:
    elsewhere = home.parent / "elsewhere"
    (shutil.move if original == "gone" else shutil.copytree)(home, elsewhere)
    before = files(home), files(elsewhere)
    for act in ACTS:
        with pytest.raises(MovedWarehouse) as caught:
            act(on_files(elsewhere))
        assert f"PERENNIAL_WAREHOUSE={home}/lake/warehouse" in caught.value.remedy
    assert (files(home), files(elsewhere)) == before


def test_use_lake__link_left_at_the_old_location__works_under_both_names(home: Path) -> None:
    elsewhere = home.parent / "elsewhere"
    shutil.move(home, elsewhere)
    home.symlink_to(elsewhere)
    for path in (elsewhere, home):
        lake = on_files(path)
        assert lake.sql("SELECT * FROM market.prices").num_rows > 0
        assert lake.replace("market.prices", TUE, prices(TUE, scale=len(str(path)))).changed
        lake.maintain("market.prices", now=LATER, compact_before="2027-01")
        assert lake.partitions("market.prices") == [MON, TUE]


def test_replace__new_catalogue_over_an_old_warehouse__is_refused(home: Path) -> None:
    """Its maintenance would delete every file that the lost catalogue knew."""
    backup(catalog(home), home / "backup.db")
    lose(catalog(home))
    before = files(home)
    for _ in range(2):
        with pytest.raises(ForeignWarehouse) as caught:
            on_files(home).replace("market.prices", MON, prices(MON))
    assert "PERENNIAL_CATALOG_URL" in caught.value.remedy
    on_files(home).maintain("market.prices", now=LATER, compact_before=None)
    assert files(home) == before
    lose(catalog(home))
    backup(home / "backup.db", catalog(home))
    assert on_files(home).replace("market.prices", TUE, prices(TUE)).changed


def test_replace__older_catalogue_restored__goes_on(home: Path) -> None:
    backup(catalog(home), home / "backup.db")
    on_files(home).replace("market.prices", TUE, prices(TUE))
    lose(catalog(home))
    backup(home / "backup.db", catalog(home))
    restored = on_files(home)
    assert restored.partitions("market.prices") == [MON]
    restored.replace("market.prices", TUE, prices(TUE))
    restored.maintain("market.prices", now=datetime.now(UTC), compact_before=None)
    assert restored.partitions("market.prices") == [MON, TUE]


def test_replace__folder_that_refuses_writes__is_unwritable(tmp_path: Path) -> None:
    """A folder in which not even root may make a file."""
    lake = Lake(
        catalog_url=f"sqlite:///{tmp_path}/catalog.db",
        warehouse="/sys/perennial",
        home=tmp_path,
        tables=TABLES,
    )
    with pytest.raises(LakeUnwritable):
        lake.replace("market.prices", MON, prices(MON))


def test_partitions__metadata_file_missing__suggests_a_newer_catalogue(home: Path) -> None:
    for path in home.rglob("*.metadata.json"):
        path.unlink()
    with pytest.raises(InfrastructureError) as caught:
        on_files(home).partitions("market.prices")
    assert caught.value.reason_code == "lake_metadata_missing"
    assert "older catalog" in caught.value.remedy


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("disk I/O error", "disk_full"),
        ("database or disk is full", "disk_full"),
        ("file is not a database", "lake_catalog"),
    ],
)
def test_read_catalogue__sqlite_refuses__is_transient_and_names_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, reason: str
) -> None:
    path = tmp_path / "catalog.db"
    path.touch()

    def refuse(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError(said)

    monkeypatch.setattr(sqlite3, "connect", refuse)
    with pytest.raises(TransientResourceError, match=said) as caught:
        SqliteCatalogReader(path).metadata_locations()
    assert caught.value.reason_code == reason

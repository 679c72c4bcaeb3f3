"""Readers who may not write where the catalogue is: they see each commit, or are told why they cannot."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from domain.shared.error import TransientResourceError
from resources.lake.client import Lake
from resources.lake.pointer import SqlitePointers
from resources.lake.settings import CATALOG_NAME
from tests.unit.lake.frames import on_files, prices

MON, TUE = "2026-11-16", "2026-11-17"
NOBODY = 65534

LOOK = f"""
import os, sys
from pathlib import Path
from resources.lake.pointer import SqlitePointers
from domain.shared.error import TransientResourceError
os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})
try:
    print(*SqlitePointers(Path(sys.argv[1])).read().values())
except TransientResourceError as error:
    print(error.reason_code, error.message, error.remedy, sep="|")
"""

as_another_user = pytest.mark.skipif(os.geteuid() != 0, reason="only root can look as another user")


@pytest.fixture
def home() -> Iterator[Path]:
    """In a folder that every user may enter, which those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="lake", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def catalog(home: Path) -> Path:
    return home / "lake" / "catalog.db"


def seen_by_another_user(home: Path) -> str:
    reconcile = [sys.executable, "-c", LOOK, str(catalog(home))]
    return subprocess.run(
        reconcile, check=True, capture_output=True, text=True, cwd=Path.cwd()
    ).stdout.strip()


def seen_by_the_writer(home: Path) -> str:
    return " ".join(SqlitePointers(catalog(home)).read().values())


def writing(home: Path) -> Lake:
    """A lake in the hands of a process that lives: its commits are in the log beside the catalogue."""
    lake = on_files(home)
    lake.replace("market.prices", MON, prices(MON))
    assert catalog(home).with_name("catalog.db-wal").stat().st_size
    return lake


@as_another_user
def test_another_user_sees_each_commit_while_a_writer_lives(home: Path) -> None:
    lake = writing(home)
    first = seen_by_another_user(home)
    assert first == seen_by_the_writer(home) != ""
    lake.replace("market.prices", TUE, prices(TUE))
    assert seen_by_another_user(home) == seen_by_the_writer(home) != first


@as_another_user
def test_another_user_sees_what_a_writer_left_that_died(home: Path) -> None:
    lake = writing(home)
    shutil.copytree(home / "lake", home / "died")
    lake._writer.catalog.open().engine.dispose()
    shutil.rmtree(home / "lake")
    (home / "died").rename(home / "lake")
    assert seen_by_another_user(home) != ""
    (home / "lake" / "catalog.db-shm").unlink()
    code, said, remedy = seen_by_another_user(home).split("|")
    assert code == "lake_catalog"
    assert f"{catalog(home)} cannot be read: its newest commits are in catalog.db-wal" in said
    assert str(home / "lake") in remedy
    assert "backup" not in remedy
    assert seen_by_the_writer(home) == seen_by_another_user(home) != "", "the remedy helps"


@as_another_user
def test_another_user_sees_a_catalogue_at_rest(home: Path) -> None:
    lake = writing(home)
    lake._writer.catalog.open().engine.dispose()
    assert [p.name for p in (home / "lake").glob("catalog.db*")] == ["catalog.db"]
    assert seen_by_another_user(home) == seen_by_the_writer(home) != ""


def test_a_log_that_goes_during_a_look_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "catalog.db"
    with closing(sqlite3.connect(path)) as made:
        names = "catalog_name, table_namespace, table_name, metadata_location"
        made.execute(f"CREATE TABLE iceberg_tables ({names})")
        made.execute("INSERT INTO iceberg_tables VALUES (?, 'market', 'prices', 'here')", [CATALOG_NAME])
        made.commit()
    log = tmp_path / "catalog.db-wal"
    log.touch()
    asked: list[str] = []

    class Leaving(SqlitePointers):
        def _rows(self, query: str, mode: str) -> list[object]:
            asked.append(mode)
            if log.exists():
                log.unlink()
                raise sqlite3.OperationalError("unable to open database file")
            return super()._rows(query, mode)

    monkeypatch.setattr(os, "access", lambda _, how: how != os.W_OK)
    assert Leaving(path).read() == {"market.prices": "here"}
    assert asked == ["mode=ro", "mode=ro&immutable=1"]


def test_a_catalogue_whose_log_nobody_can_open_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "catalog.db"
    path.touch()
    (tmp_path / "catalog.db-wal").touch()

    class Closed(SqlitePointers):
        def _rows(self, *_: str) -> list[object]:
            raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(os, "access", lambda _, how: how != os.W_OK)
    with pytest.raises(TransientResourceError, match=r"catalog\.db-wal") as caught:
        Closed(path).read()
    assert str(tmp_path) in caught.value.remedy


def test_a_missing_metadata_file_suggests_no_drop_of_the_table(tmp_path: Path) -> None:
    from domain.shared.error import InfrastructureError

    on_files(tmp_path).replace("market.prices", MON, prices(MON))
    for path in tmp_path.rglob("*.metadata.json"):
        path.unlink()
    with pytest.raises(InfrastructureError, match="is missing") as caught:
        on_files(tmp_path).partitions("market.prices")
    assert "older catalog" in caught.value.remedy
    assert "drop" not in caught.value.remedy


@pytest.mark.parametrize("said", ["disk I/O error", "database or disk is full"])
def test_a_full_disk_is_no_reason_to_restore_the_catalogue(tmp_path: Path, said: str) -> None:
    path = tmp_path / "catalog.db"
    path.touch()

    class Full(SqlitePointers):
        def _rows(self, *_: str) -> list[object]:
            raise sqlite3.OperationalError(said)

    with pytest.raises(TransientResourceError) as failure:
        Full(path).read()
    assert failure.value.reason_code == "disk_full"
    assert "free space" in failure.value.remedy

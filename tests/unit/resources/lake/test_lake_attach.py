"""A DuckDB file with views over the lake's files: its rows now, after a commit, and after a refresh."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from domain.shared.error import InvalidInput
from resources.lake.attach import attach
from resources.lake.client import Lake
from tests.unit.resources.lake.frames import CODES, on_files, prices

MON, TUE = "2026-11-16", "2026-11-17"
NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = on_files(tmp_path / "home", views={"market.closes": "SELECT trade_date, close FROM market.prices"})
    lake.replace("market.prices", [MON], prices(MON))
    return lake


def ask(path: Path, query: str) -> list[tuple[Any, ...]]:
    """As a program that knows nothing of Perennial."""
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.sql(query).fetchall()


def test_attach__tables_and_views__are_read_with_units_by_duckdb_alone(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "bi.duckdb"
    assert lake.attach(path, NOW) == len(lake.tables) + 1
    assert ask(path, "SELECT count(*) FROM market.prices") == [(len(CODES),)]
    assert ask(path, "SELECT count(*) FROM market.closes") == [(len(CODES),)]
    assert ask(path, "SELECT count(*) FROM carbon.factors") == [(0,)]
    comment = "SELECT comment FROM duckdb_columns() WHERE table_name = 'prices' AND column_name = 'close'"
    assert ask(path, comment) == [("close [CNY]",)]
    assert ask(
        path, "SELECT rows, attached_at FROM perennial_attached WHERE table_name = 'market.prices'"
    ) == [(len(CODES), NOW)]


def test_attach__table_changes__shows_the_old_rows_until_it_is_attached_again(
    lake: Lake, tmp_path: Path
) -> None:
    path, count = tmp_path / "bi.duckdb", "SELECT count(*) FROM market.prices"
    lake.attach(path, NOW)
    with duckdb.connect(str(path), read_only=True) as other:
        lake.replace("market.prices", [TUE], prices(TUE))
        assert ask(path, count) == [(len(CODES),)]
        lake.attach(path, NOW)
        assert other.sql(count).fetchall() == [(len(CODES),)], "a program that has it open goes on"
    assert ask(path, count) == [(2 * len(CODES),)]


def test_attach__files_are_gone__fails_and_has_no_wrong_rows(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "bi.duckdb"
    lake.attach(path, NOW)
    lake.replace("market.prices", [MON], prices(MON).slice(0, 2))
    later = datetime.now(UTC) + timedelta(days=8)
    lake.maintain("market.prices", now=later, compact_before=None, orphan_age=timedelta(0))
    with pytest.raises(duckdb.IOException, match="No files found"):
        ask(path, "SELECT count(*) FROM market.prices")


def test_attach__file_of_somebody_else__is_kept(lake: Lake, tmp_path: Path) -> None:
    theirs, text = tmp_path / "theirs.duckdb", tmp_path / "notes.txt"
    with duckdb.connect(str(theirs)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1 AS a")
    text.write_text("mine")
    for path in (theirs, text):
        with pytest.raises(InvalidInput, match="is there and is not replaced"):
            lake.attach(path, NOW)
    assert ask(theirs, "FROM mine") == [(1,)]
    assert text.read_text() == "mine"


def test_attach__folder_is_not_there__says_so(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written"):
        lake.attach(tmp_path / "none" / "bi.duckdb", NOW)


def test_attach__object_store__is_refused(lake: Lake, tmp_path: Path) -> None:
    from resources.lake.engine import Engine
    from resources.objects.store import Store

    engine = Engine(Store(), "s3://bucket/warehouse", "1GB", 1)
    with pytest.raises(InvalidInput, match="object store"):
        attach(tmp_path / "bi.duckdb", {}, {}, engine, NOW)

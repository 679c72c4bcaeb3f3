"""Data files that rot or vanish: what is said of them, and how replacing heals."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from domain.shared.table import ABSENT, ALL
from resources.lake.error import DataCorrupt
from tests.unit.lake.frames import CODES, DAILY, WHOLE, data_files, days_from, on_files, prices, stocks

DAYS = days_from("2026-11-01", 5)
LATE = "2026-12-01"


def rot_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36  # the first pages; the footer stays whole
    path.write_bytes(content)


def rot_footer(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-40:] = b"\x00" * 40
    path.write_bytes(content)


def rot_column_name(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content.replace(b"close", b"cl\xffse"))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def remove(path: Path) -> None:
    path.unlink()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """November's first five days in one file, a day of December in another."""
    lake = on_files(tmp_path)
    many = tuple(f"{n:06d}.SZ" for n in range(500))
    lake.replace_range("market.prices", DAYS, prices(*DAYS, codes=many))
    lake.replace("market.prices", LATE, prices(LATE))
    lake.replace("market.stocks", ALL, stocks(a="x"))
    return tmp_path


def november(home: Path) -> Path:
    (path,) = [p for p in data_files(home) if "2026-11" in str(p)]
    return path


HURTS = pytest.mark.parametrize("hurt", [rot_middle, rot_footer, rot_column_name, truncate, remove])


@HURTS
@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_versions_tell_the_damaged_days_and_spare_the_others(home: Path, hurt: object, warm: bool) -> None:
    lake = on_files(home)
    late = lake.versions("market.prices", [*DAYS, LATE])[LATE]
    hurt(november(home))  # type: ignore[operator]
    lake = lake if warm else on_files(home)
    versions = lake.versions("market.prices", [*DAYS, LATE, "2026-11-30"])
    assert all(versions[day].corrupt for day in DAYS)
    assert (versions[LATE], versions["2026-11-30"]) == (late, ABSENT)
    assert lake.partitions("market.prices") == [*DAYS, LATE]


@HURTS
def test_reading_damaged_rows_is_an_error_that_names_days_and_remedy(home: Path, hurt: object) -> None:
    hurt(november(home))  # type: ignore[operator]
    lake = on_files(home)
    for read in (
        lambda: lake.sql("SELECT max(trade_date) AS d, sum(close) AS c FROM market.prices"),
        lambda: lake.scan("market.prices").read_all(),
    ):
        with pytest.raises(
            DataCorrupt, match=r"market.prices: 1 data file.*2026-11-01, 2026-11-02"
        ) as caught:
            read()
        assert caught.value.partitions == tuple(DAYS)
        assert "replace" in caught.value.remedy
    assert lake.sql("SELECT * FROM market.stocks").num_rows == 1, "other tables are read as ever"


@HURTS
def test_replacing_a_damaged_day_heals_it_and_says_what_is_lost(
    home: Path, hurt: object, caplog: pytest.LogCaptureFixture
) -> None:
    hurt(november(home))  # type: ignore[operator]
    lake = on_files(home)
    with caplog.at_level(logging.WARNING):
        commit = lake.replace("market.prices", DAYS[2], prices(DAYS[2]))
    assert all(day in caplog.text for day in DAYS if day != DAYS[2])
    assert commit.changed
    assert lake.partitions("market.prices") == [DAYS[2], LATE]
    for day in DAYS:
        lake.replace("market.prices", day, prices(day))
    assert on_files(home).sql("SELECT count(*) AS n FROM market.prices").to_pylist() == [
        {"n": 6 * len(CODES)}
    ]


def test_without_the_index_every_day_the_file_may_hold_is_damaged(home: Path) -> None:
    """The index knows a file's days; without it there are only the file's bounds."""
    on_files(home).replace("market.prices", DAYS[1], prices(), allow_empty=True)
    newest = max((p for p in data_files(home) if "2026-11" in str(p)), key=lambda p: p.stat().st_mtime_ns)
    rot_footer(newest)
    bare = on_files(home / "elsewhere")
    assert not bare.versions("market.prices", DAYS)[DAYS[0]].corrupt, "that is another lake"
    from resources.lake.client import Lake

    cold = Lake.open(
        catalog_url=f"sqlite:///{home}/lake/catalog.db",
        warehouse=f"file://{home}/lake/warehouse",
        home=home / "elsewhere",
        tables=(DAILY, WHOLE),
    )
    assert all(v.corrupt for v in cold.versions("market.prices", DAYS).values())
    assert cold.partitions("market.prices") == [*DAYS, LATE]


def test_a_restored_file_is_whole_again(home: Path) -> None:
    lake = on_files(home)
    before = lake.versions("market.prices", DAYS)
    content = november(home).read_bytes()
    rot_footer(november(home))
    assert lake.version("market.prices", DAYS[0]).corrupt
    november(home).write_bytes(content)
    assert lake.versions("market.prices", DAYS) == before


def test_merging_into_damaged_rows_is_refused(home: Path) -> None:
    remove(data_files(home, WHOLE)[0])
    lake = on_files(home)
    with pytest.raises(DataCorrupt, match=r"market.stocks"):
        lake.merge("market.stocks", stocks(b="y"))
    lake.replace("market.stocks", ALL, stocks(b="y"))
    assert lake.sql("SELECT ts_code FROM market.stocks").to_pylist() == [{"ts_code": "b"}]


def test_maintenance_reports_damage_and_goes_on(home: Path) -> None:
    from datetime import UTC, datetime

    lake = on_files(home)
    lake.replace("market.prices", "2026-11-20", prices("2026-11-20"))
    rot_footer(max(data_files(home), key=lambda p: p.stat().st_size))
    report = lake.maintain("market.prices", now=datetime.now(UTC), compact_before="2027-01")
    assert len(report.corrupt_files) == 1
    assert report.compacted_files == 0

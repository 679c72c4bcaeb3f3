"""Files that change where they lay, with their size and time as they were: upkeep reads them again."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from resources.lake.client import Lake
from resources.lake.scrub import EVERY, is_its_night
from tests.unit.lake.frames import data_files, days_from, on_files, prices
from tests.unit.lake.test_lake_damage import rot_middle

DAYS = days_from("2026-11-01", 5)
OTHER = "2026-12-01"
NAME = "market.prices"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """November's first five days in one file, a day of December in another, and the versions of all known."""
    lake = on_files(tmp_path)
    many = tuple(f"{n:06d}.SZ" for n in range(500))
    lake.replace_range(NAME, DAYS, prices(*DAYS, codes=many))
    lake.replace(NAME, OTHER, prices(OTHER))
    assert not any(v.corrupt for v in lake.versions(NAME, [*DAYS, OTHER]).values())
    return tmp_path


def falsify(path: Path) -> None:
    """Other prices and volumes on the last day, in a file that decodes and is as long as it was."""
    rows, size = pq.read_table(path), path.stat().st_size
    is_last = pc.equal(rows.column("trade_date"), pa.scalar(datetime.fromisoformat(DAYS[-1]).date()))
    for name in ("close", "volume"):
        place = rows.schema.get_field_index(name)
        values = pc.if_else(is_last, pa.scalar(1, rows.schema.field(name).type), rows.column(name))
        rows = rows.set_column(place, rows.schema.field(place), values)
    words = ["trade_date", "ts_code"]
    pq.write_table(
        rows, path, compression="zstd", compression_level=19, store_schema=False, use_dictionary=words
    )
    content = path.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    path.write_bytes(content[:-footer] + b"\0" * (size - len(content)) + content[-footer:])


def in_silence(hurt: Callable[[Path], None], home: Path) -> None:
    (path,) = [p for p in data_files(home) if "2026-11" in str(p)]
    before = path.stat()
    hurt(path)
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def a_week_of_upkeep(lake: Lake) -> list[str]:
    nights = [datetime.now(UTC) + timedelta(days=n) for n in range(EVERY)]
    reports = [lake.maintain(NAME, now=night, compact_before=None) for night in nights]
    return [day for report in reports for day in report.changed_partitions]


def test_a_week_of_upkeep_finds_prices_that_changed_where_they_lay(home: Path) -> None:
    beside, before = on_files(home), on_files(home).versions(NAME, [*DAYS, OTHER])
    assert beside.versions(NAME, [*DAYS, OTHER]) == before
    in_silence(falsify, home)
    assert on_files(home).versions(NAME, [*DAYS, OTHER]) == before, "nobody has looked at the bytes"

    assert a_week_of_upkeep(on_files(home)) == [DAYS[-1]]
    after = on_files(home).versions(NAME, [*DAYS, OTHER])
    assert [day for day in after if after[day] != before[day]] == [DAYS[-1]]
    assert beside.versions(NAME, [*DAYS, OTHER]) == after, "who was there before hears of it too"
    assert a_week_of_upkeep(on_files(home)) == [], "and nobody is told again"


def test_a_week_of_upkeep_finds_a_file_that_rotted(home: Path) -> None:
    in_silence(rot_middle, home)
    assert not on_files(home).version(NAME, DAYS[0]).corrupt
    assert a_week_of_upkeep(on_files(home)) == list(DAYS)
    assert all(v.corrupt for v in on_files(home).versions(NAME, DAYS).values())
    assert not on_files(home).version(NAME, OTHER).corrupt


def test_whole_files_are_told_by_nobody(home: Path) -> None:
    assert a_week_of_upkeep(on_files(home)) == []


def test_each_file_has_its_night_and_the_nights_share_them() -> None:
    week = [datetime(2026, 11, 16, tzinfo=UTC).date() + timedelta(days=n) for n in range(EVERY)]
    months = [f"{year}-{month:02d}" for year in range(2016, 2026) for month in range(1, 13)]
    by_night = [{m for m in months if is_its_night(NAME, m, night)} for night in week]
    assert sum(map(len, by_night)) == len(set().union(*by_night)) == len(months)
    assert max(map(len, by_night)) < len(months) / 3

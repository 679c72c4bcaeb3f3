"""What becomes of files over time: orphans, expired snapshots, and the needs of readers meanwhile."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.shared.error import InvalidInput
from resources.lake.error import LakeUnwritable, storage_errors
from resources.lake.maintenance import MANY_FILES
from tests.unit.resources.lake.frames import BY_KIND, CODES, data_files, days_from, on_files, papers, prices

MON = "2026-11-16"


def all_files(home: Path) -> set[Path]:
    return {p for p in (home / "lake" / "warehouse").rglob("*") if p.is_file()}


def age(paths: set[Path], days: float) -> None:
    then = (datetime.now(UTC) - timedelta(days=days)).timestamp()
    for path in paths:
        os.utime(path, (then, then))


def test_unreferenced_files_go_once_they_are_old_enough(tmp_path: Path) -> None:
    lake = on_files(tmp_path)
    lake.replace("market.prices", MON, prices(MON))
    folder = data_files(tmp_path)[0].parent
    crashed, in_flight = folder / "left-by-a-crash.parquet", folder / "being-written.parquet"
    for path in (crashed, in_flight):
        path.write_bytes(b"x" * 10)
    referenced = all_files(tmp_path) - {crashed, in_flight}
    age(referenced | {crashed}, days=2)
    report = lake.maintain("market.prices", now=datetime.now(UTC), compact_before=None)
    assert report.deleted_files == 1
    assert all_files(tmp_path) == referenced | {in_flight}


def test_files_of_kept_snapshots_stay_and_those_of_expired_ones_go(tmp_path: Path) -> None:
    lake = on_files(tmp_path)
    made = [lake.replace("market.prices", MON, prices(MON, scale=n)).snapshot_id for n in range(1, 6)]
    age(all_files(tmp_path), days=30)
    later = datetime.now(UTC) + timedelta(days=8)
    lake.maintain(
        "market.prices",
        now=later,
        compact_before=None,
        keep_snapshots=[made[1]],
        orphan_age=timedelta(days=9),
    )
    assert len(data_files(tmp_path)) == 2
    kept = on_files(tmp_path).scan("market.prices", as_of=made[1]).read_all()
    assert kept.sort_by("ts_code").to_pylist() == prices(MON, scale=2).sort_by("ts_code").to_pylist()
    assert len(list(tmp_path.rglob("snap-*.avro"))) == 2
    before = all_files(tmp_path)
    lake.maintain(
        "market.prices",
        now=later,
        compact_before=None,
        keep_snapshots=[made[1]],
        orphan_age=timedelta(days=9),
    )
    assert all_files(tmp_path) <= before


def test_a_reader_as_of_a_moment_within_the_retention_survives_maintenance(tmp_path: Path) -> None:
    lake = on_files(tmp_path)
    days = days_from("2026-10-01", 6)
    for day in days:
        lake.replace("market.prices", day, prices(day))
    moment = lake.snapshot_id("market.prices")
    stream = lake.scan("market.prices", as_of=moment)
    lake.replace("market.prices", days[0], prices(days[0], scale=7))
    age(all_files(tmp_path), days=2)
    report = lake.maintain("market.prices", now=datetime.now(UTC), compact_before="2026-11")
    assert report.compacted_files == 6
    rows = stream.read_all()
    assert rows.num_rows == 6 * len(CODES)
    assert max(rows.column("close").to_pylist()) < 20, "the rows of that moment, not the newest"


def test_a_crumbled_category_becomes_one_file(tmp_path: Path) -> None:
    lake = on_files(tmp_path)
    lake.replace("refs.papers", "a", papers((0, "a", "x")))
    stored = lake._writer.catalog.load("refs.papers")
    for n in range(1, MANY_FILES):  # another engine appends row by row
        stored.append(papers((n, "a", "x")).cast(BY_KIND.schema))
    before = lake.version("refs.papers", "a")
    report = lake.maintain("refs.papers", now=datetime.now(UTC), compact_before=None)
    assert report.compacted_files == MANY_FILES
    assert lake.version("refs.papers", "a") == before
    assert before.rows == MANY_FILES


def test_the_open_month_is_left_alone(tmp_path: Path) -> None:
    lake = on_files(tmp_path)
    for day in days_from("2026-11-01", 3):
        lake.replace("market.prices", day, prices(day))
    report = lake.maintain("market.prices", now=datetime.now(UTC), compact_before="2026-11-30")
    assert report.compacted_files == 0


def test_old_metadata_files_do_not_pile_up(tmp_path: Path) -> None:
    lake = on_files(tmp_path)
    for n in range(15):
        lake.replace("market.prices", MON, prices(MON, scale=n))
    assert len(list(tmp_path.rglob("*.metadata.json"))) <= 12


def test_maintenance_wants_a_moment_with_its_zone(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="time zone"):
        on_files(tmp_path).maintain("market.prices", now=datetime(2026, 1, 1), compact_before=None)  # noqa: DTZ001


@pytest.mark.parametrize(("number", "reason"), [(30, "lake_unwritable"), (28, "disk_full")])
def test_a_disk_that_refuses_is_distinguished_from_one_that_is_full(number: int, reason: str) -> None:
    with pytest.raises(LakeUnwritable) as caught, storage_errors("market.prices"):
        raise OSError(number, os.strerror(number))
    assert caught.value.reason_code == reason
    assert caught.value.remedy

"""What becomes of files over time: orphans, expired snapshots, small files and manifests."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.shared.error import InvalidInput
from domain.shared.table import ALL
from resources.lake import maintenance
from resources.lake.error import LakeUnwritable, SnapshotGone, storage_errors
from tests.unit.resources.lake.frames import (
    BY_KIND,
    DAILY,
    data_files,
    days_from,
    on_files,
    papers,
    prices,
    rows_of,
    stocks,
)

MON, PRICES = "2026-11-16", DAILY.name


def all_files(home: Path) -> set[Path]:
    return {p for p in (home / "lake" / "warehouse").rglob("*") if p.is_file()}


def age(paths: set[Path], days: float) -> None:
    then = (datetime.now(UTC) - timedelta(days=days)).timestamp()
    for path in paths:
        os.utime(path, (then, then))


def test_maintain__unreferenced_files__go_once_they_are_old_enough(tmp_path: Path) -> None:
    lake = on_files(tmp_path)
    lake.replace(PRICES, MON, prices(MON))
    folder = data_files(tmp_path)[0].parent
    crashed, in_flight = folder / "left-by-a-crash.parquet", folder / "being-written.parquet"
    for path in (crashed, in_flight):
        path.write_bytes(b"x" * 10)
    referenced = all_files(tmp_path) - {crashed, in_flight}
    age(referenced | {crashed}, days=2)
    report = lake.maintain(PRICES, now=datetime.now(UTC), compact_before=None)
    assert report.deleted_files == 1
    assert all_files(tmp_path) == referenced | {in_flight}


def test_maintain__snapshots_expired__deletes_their_files_and_keeps_those_of_pinned_ones(
    tmp_path: Path,
) -> None:
    lake = on_files(tmp_path)
    made = [lake.replace(PRICES, MON, prices(MON, scale=n)).snapshot_id for n in range(1, 6)]
    age(all_files(tmp_path), days=30)
    later, pinned = datetime.now(UTC) + timedelta(days=8), made[1]
    for _ in range(2):
        lake.maintain(
            PRICES, now=later, compact_before=None, keep_snapshots=[pinned], orphan_age=timedelta(days=9)
        )
        assert len(data_files(tmp_path)) == len(list(tmp_path.rglob("snap-*.avro"))) == 2
    kept = rows_of(on_files(tmp_path), PRICES, as_of=pinned)
    assert kept.sort_by("ts_code").to_pylist() == prices(MON, scale=2).to_pylist()


def test_maintain__snapshot_was_current_within_the_history__is_kept_however_old(tmp_path: Path) -> None:
    lake = on_files(tmp_path)
    first = lake.replace(PRICES, MON, prices(MON)).snapshot_id
    moments = [datetime.now(UTC)]
    lake.replace(PRICES, MON, prices(MON, scale=2))
    moments.append(datetime.now(UTC))
    expired = []
    for moment in moments:
        now = moment + timedelta(days=7)
        lake.maintain(PRICES, now=now, compact_before=None, expire_after=now - moment)
        try:
            expired.append(rows_of(lake, PRICES, as_of=first).num_rows)
        except SnapshotGone:
            expired.append(0)
    assert expired == [4, 0]


def test_maintain__table_with_a_longer_history__keeps_its_snapshots(tmp_path: Path) -> None:
    long_lived = replace(DAILY, name="market.reports", history=timedelta(days=3650))
    lake = on_files(tmp_path, (DAILY, long_lived))
    expired = {}
    for name in (PRICES, long_lived.name):
        for scale in (1, 2):
            lake.replace(name, MON, prices(MON, scale=scale))
        later = datetime.now(UTC) + timedelta(days=365)
        expired[name] = lake.maintain(name, now=later, compact_before=None).expired_snapshots
    assert expired == {PRICES: 1, long_lived.name: 0}


def test_maintain__crumbled_category__becomes_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "MANY_FILES", 4)
    lake = on_files(tmp_path)
    lake.replace("refs.papers", "a", papers((0, "a", "x")))
    with lake._writer.catalog.load("refs.papers").transaction() as together:  # another engine appends
        for n in (1, 2, 3):
            together.append(papers((n, "a", "x")).cast(BY_KIND.schema))
    before = lake.version("refs.papers", "a")
    report = lake.maintain("refs.papers", now=datetime.now(UTC), compact_before=None)
    assert report.compacted_files == before.rows == 4
    assert lake.version("refs.papers", "a") == before


def test_maintain__open_month__is_not_compacted(tmp_path: Path) -> None:
    lake = on_files(tmp_path)
    for day in days_from("2026-11-01", 3):
        lake.replace(PRICES, day, prices(day))
    report = lake.maintain(PRICES, now=datetime.now(UTC), compact_before="2026-11-30")
    assert report.compacted_files == 0


def test_replace__many_times__keeps_few_manifests_and_metadata_files(tmp_path: Path) -> None:
    lake = on_files(tmp_path)
    for n in range(23):
        lake.replace("market.stocks", ALL, stocks(a=str(n)))
    stored = lake._writer.catalog.load("market.stocks")
    assert len(stored.current_snapshot().manifests(stored.io)) < 20
    assert len(list(tmp_path.rglob("*.metadata.json"))) <= 12


def test_maintain__moment_without_zone__is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="time zone"):
        on_files(tmp_path).maintain(PRICES, now=datetime(2026, 1, 1), compact_before=None)  # noqa: DTZ001


@pytest.mark.parametrize(("number", "reason"), [(30, "lake_unwritable"), (28, "disk_full")])
def test_write__disk_refuses__is_distinguished_from_full(number: int, reason: str) -> None:
    with pytest.raises(LakeUnwritable) as caught, storage_errors(PRICES):
        raise OSError(number, os.strerror(number))
    assert caught.value.reason_code == reason
    assert caught.value.remedy

"""Partitions that DuckDB calculates and writes: committed, unchanged, refused, tried again and left
behind."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from domain.shared.error import InvalidInput
from domain.shared.table import Column, Table
from resources.lake.client import Lake
from resources.lake.error import DataCorrupt, LakeUnwritable
from resources.lake.partition_writer import WrittenPartition
from tests.unit.resources.lake.frames import BY_KIND_AND_YEAR, data_files, entries, on_files, rows_of

RESULTS = Table(
    name="carbon.results",
    description="A mass for each amount.",
    columns=(
        Column("year", pa.int32(), "year", nullable=False),
        Column("kind", pa.string(), "kind", nullable=False),
        Column("id", pa.int64(), "id", nullable=False),
        Column("mass", pa.int64(), "mass"),
    ),
    key=("kind", "year", "id"),
    partition_kind="category_year",
    partition_columns=("kind", "year"),
    sums="SELECT count(mass) AS masses, sum(mass) AS mass, sum(mass * id) AS crossed FROM results",
)
TABLES = (BY_KIND_AND_YEAR, RESULTS)
PLANE, TRAIN = "plane|2025", "train|2025"
TWICE = (
    "SELECT year, kind, id, CAST(amount * factor AS BIGINT) AS mass FROM entries JOIN factors USING (kind)"
)


def opened(home: Path) -> Lake:
    return on_files(home, TABLES)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = opened(tmp_path)
    lake.replace(BY_KIND_AND_YEAR.name, PLANE, entries("plane", 2025, 1, 2, 3))
    lake.replace(BY_KIND_AND_YEAR.name, TRAIN, entries("train", 2025, 10, 20))
    return lake


def write(lake: Lake, partition: str, factor: int = 2, sql: str = TWICE) -> WrittenPartition:
    factors = pa.table({"kind": pa.array(["plane", "train"]).dictionary_encode(), "factor": [factor, factor]})
    with lake.partition_writer(
        RESULTS.name, partition, source=BY_KIND_AND_YEAR.name, name="entries"
    ) as writer:
        writer.register("factors", factors)
        return writer.write(sql)


def full(path: Path) -> None:
    path.symlink_to("/dev/full")


def masses(lake: Lake) -> list[int]:
    return [row["mass"] for row in lake.sql("SELECT mass FROM carbon.results ORDER BY kind, id").to_pylist()]


def test_put__new_partition__holds_the_rows_and_the_version_of_its_sums(lake: Lake, tmp_path: Path) -> None:
    written = write(lake, PLANE)
    commit = lake.put(RESULTS.name, [written])
    assert commit.changed
    assert masses(lake) == [2, 4, 6]
    assert written.version.rows == 3
    assert commit.versions == {PLANE: written.version} == lake.versions(RESULTS.name, [PLANE])
    for cache in (tmp_path / "cache").rglob("*.json"):
        cache.unlink()
    assert opened(tmp_path).versions(RESULTS.name, [PLANE]) == commit.versions


def test_put__same_content__makes_no_snapshot_and_leaves_no_file(lake: Lake, tmp_path: Path) -> None:
    first = lake.put(RESULTS.name, [write(lake, PLANE)])
    files = data_files(tmp_path, RESULTS)
    again = lake.put(RESULTS.name, [write(lake, PLANE)])
    assert (again.changed, again.snapshot_id) == (False, first.snapshot_id)
    assert data_files(tmp_path, RESULTS) == files
    assert lake.put(RESULTS.name, [write(lake, PLANE, factor=3)]).changed
    assert masses(lake) == [3, 6, 9]


def test_put__several_partitions_of_which_one_changed__is_one_snapshot(lake: Lake) -> None:
    first = lake.put(RESULTS.name, [write(lake, PLANE), write(lake, TRAIN)])
    second = lake.put(RESULTS.name, [write(lake, PLANE), write(lake, TRAIN, factor=3)])
    assert second.parent_id == first.snapshot_id
    assert masses(lake) == [2, 4, 6, 30, 60]


def test_put__emptied_partition__is_absent(lake: Lake) -> None:
    lake.put(RESULTS.name, [write(lake, PLANE), write(lake, TRAIN)])
    lake.put(RESULTS.name, [write(lake, PLANE, sql=f"{TWICE} WHERE amount > 99")])
    assert lake.partitions(RESULTS.name) == [TRAIN]


def test_put__another_writer_comes_first__keeps_the_file_for_the_next_attempt(lake: Lake) -> None:
    lake.put(RESULTS.name, [write(lake, PLANE)])
    calls = []

    def interfere() -> None:
        calls.append(1)
        if len(calls) == 1:
            foreign = rows_of(lake, RESULTS.name).cast(RESULTS.schema)
            lake._writer.catalog.load(RESULTS.name).append(foreign)

    assert lake.put(RESULTS.name, [write(lake, PLANE, factor=7)], guard=interfere).changed
    assert len(calls) == 2
    assert masses(lake) == [7, 14, 21]


def test_put__guard_raises__commits_nothing(lake: Lake) -> None:
    first = lake.put(RESULTS.name, [write(lake, PLANE)])

    def lost() -> None:
        raise InvalidInput("the lease is lost")

    with pytest.raises(InvalidInput, match="lease is lost"):
        lake.put(RESULTS.name, [write(lake, PLANE, factor=3)], guard=lost)
    assert lake.put(RESULTS.name, [write(lake, PLANE, factor=3)]).parent_id == first.snapshot_id


def test_write__statement_fails__leaves_no_file(lake: Lake, tmp_path: Path) -> None:
    for sql in (TWICE.replace("amount * factor", "1e300"), TWICE.replace("amount", "kind")):
        with pytest.raises(InvalidInput) as caught:
            write(lake, PLANE, sql=sql)
        assert caught.value.reason_code == "invalid_sql"
    assert data_files(tmp_path, RESULTS) == []


def test_write__corrupt_source__names_the_source(lake: Lake, tmp_path: Path) -> None:
    for path in data_files(tmp_path, BY_KIND_AND_YEAR):
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataCorrupt, match=BY_KIND_AND_YEAR.name):
        write(opened(tmp_path), PLANE)


@pytest.mark.parametrize(("reason", "block"), [("disk_full", full), ("lake_unwritable", Path.mkdir)])
def test_write__disk_refuses__is_unwritable_and_no_fault_of_the_source(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str, block: Callable[[Path], None]
) -> None:
    lake.put(RESULTS.name, [write(lake, PLANE)])
    name = uuid.uuid4()
    block(data_files(tmp_path, RESULTS)[0].parent / f"{name}.parquet")
    monkeypatch.setattr(uuid, "uuid4", lambda: name)
    with pytest.raises(LakeUnwritable) as caught:
        write(lake, PLANE, factor=3)
    assert caught.value.reason_code == reason
    assert masses(lake) == [2, 4, 6]


def test_maintain__writer_was_killed_before_its_commit__deletes_the_orphan(
    lake: Lake, tmp_path: Path
) -> None:
    lake.put(RESULTS.name, [write(lake, PLANE)])
    (committed,) = data_files(tmp_path, RESULTS)
    write(lake, PLANE, factor=9)  # and no commit
    assert len(data_files(tmp_path, RESULTS)) == 2
    report = lake.maintain(RESULTS.name, now=datetime.now(UTC) + timedelta(days=2), compact_before=None)
    assert report.deleted_files == 1
    assert data_files(tmp_path, RESULTS) == [committed]

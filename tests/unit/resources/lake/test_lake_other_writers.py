"""Others change the lake too: engines that know none of our locks, and people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from domain.shared.table import ABSENT
from tests.breaking import break_lake
from tests.unit.resources.lake.frames import CODES, on_files, prices, rows_of

MON, TUE, WED = "2026-11-16", "2026-11-17", "2026-11-18"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    on_files(tmp_path).replace("market.prices", [MON, TUE, WED], prices(MON, TUE, WED))
    return tmp_path


def break_by_hand(home: Path, *words: str, table: str = "market.prices") -> None:
    break_lake(home, table, *words)


def test_versions__days_dropped_halved_and_falsified__differ_until_replaced(home: Path) -> None:
    lake = on_files(home)
    before = lake.versions("market.prices", [MON, TUE, WED])
    break_by_hand(home, "--drop-day", MON, "--drop-half", TUE, "--corrupt-day", WED)
    after = lake.versions("market.prices", [MON, TUE, WED])
    assert after[MON] == ABSENT
    assert after[TUE].rows == len(CODES) // 2
    assert after[WED].rows == len(CODES)
    assert after[WED] != before[WED]
    for day in (MON, TUE, WED):
        lake.replace("market.prices", day, prices(day))
    assert lake.versions("market.prices", [MON, TUE, WED]) == before


def test_versions__file_rotted__are_corrupt(home: Path) -> None:
    break_by_hand(home, "--rot-file", TUE)
    assert all(v.corrupt for v in on_files(home).versions("market.prices", [MON, TUE, WED]).values())


def test_replace__another_engine_commits_first__is_computed_anew(home: Path) -> None:
    lake = on_files(home)
    calls = []

    def superseded() -> None:
        calls.append(1)
        if len(calls) == 1:
            break_by_hand(home, "--drop-day", WED)

    commit = lake.replace("market.prices", MON, prices(MON, scale=2), guard=superseded)
    assert len(calls) == 2, "the lease is checked again before the second attempt"
    assert lake.partitions("market.prices") == [MON, TUE], "the other engine's change was kept"
    assert lake.versions("market.prices", [MON]) == commit.versions
    assert commit.parent_id is not None


def test_read__row_level_deletes_of_another_engine__are_obeyed(home: Path) -> None:
    lake = on_files(home)
    before = lake.versions("market.prices", [MON, TUE])
    delete_first_rows(lake._writer.catalog.load("market.prices"), 2)
    for reader in (lake, on_files(home)):
        versions = reader.versions("market.prices", [MON, TUE])
        assert versions[MON].rows == len(CODES) - 2
        assert versions[TUE] == before[TUE]
        rows = reader.sql("SELECT count(*) AS n FROM market.prices").to_pylist()
        assert rows == [{"n": 3 * len(CODES) - 2}]
        assert rows_of(reader, "market.prices").num_rows == 3 * len(CODES) - 2
        assert reader.partitions("market.prices") == [MON, TUE, WED]
    lake.replace("market.prices", TUE, prices(TUE, scale=2))
    assert lake.version("market.prices", MON) == versions[MON], "deleted rows do not come back with a rewrite"
    lake.replace("market.prices", MON, prices(MON))
    assert on_files(home).version("market.prices", MON) == before[MON]


def delete_first_rows(stored: Any, count: int) -> None:
    """Commit a position delete file, as Trino writes them; pyiceberg itself has no way to."""
    from pyiceberg.manifest import (
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        ManifestWriterV2,
    )

    class DeleteManifest(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    (task,) = stored.scan().plan_files()
    path = f"{stored.location()}/data/deletes.parquet"
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
        ]
    )
    local = Path(path.removeprefix("file://"))
    pq.write_table(
        pa.table({"file_path": [task.file.file_path] * count, "pos": range(count)}, schema=schema), local
    )
    delete_file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=task.file.partition,
        record_count=count,
        file_size_in_bytes=local.stat().st_size,
    )
    transaction = stored.transaction()
    producer = transaction.update_snapshot().fast_append()
    existing = producer._existing_manifests()
    with DeleteManifest(
        stored.spec(), stored.schema(), producer.new_manifest_output(), producer.snapshot_id, "gzip"
    ) as writer:
        writer.add(
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED,
                snapshot_id=producer.snapshot_id,
                sequence_number=None,
                file_sequence_number=None,
                data_file=delete_file,
            )
        )
    producer._manifests = lambda: [*existing, writer.to_manifest_file()]
    producer.commit()
    transaction.commit_transaction()

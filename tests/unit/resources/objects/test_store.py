"""The file and object stores: creation, listing, and reads by DuckDB's threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from domain.shared.error import TransientResourceError
from resources.objects.arrow_filesystem import ArrowFilesystem
from resources.objects.store import ObjectStore, Store


def object_store(folder: Path) -> ObjectStore:
    (folder / "bucket").mkdir(exist_ok=True)
    return ObjectStore(SubTreeFileSystem(str(folder), LocalFileSystem()))


def stores(folder: Path) -> dict[str, tuple[Store, str]]:
    return {
        "files": (Store(), f"file://{folder}/bucket"),
        "objects": (object_store(folder), "s3://bucket"),
    }


@pytest.mark.parametrize("kind", ["files", "objects"])
def test_create__name_is_taken__keeps_the_first_content(tmp_path: Path, kind: str) -> None:
    store, bucket = stores(tmp_path)[kind]
    store.create(f"{bucket}/a", b"first")
    store.create(f"{bucket}/a", b"second")
    assert store.read(f"{bucket}/a") == b"first"
    assert [p.name for p in (tmp_path / "bucket").iterdir()] == ["a"], "no scratch file is left"


@pytest.mark.parametrize("kind", ["files", "objects"])
def test_list_and_delete__either_store__agree(tmp_path: Path, kind: str) -> None:
    store, bucket = stores(tmp_path)[kind]
    store.create(f"{bucket}/a", b"abc")
    (found,) = store.list(bucket)
    assert (found.uri, found.size) == (f"{bucket}/a", 3)
    assert found.modified.tzinfo is not None
    for _ in range(2):
        store.delete(f"{bucket}/a")
    assert list(store.list(bucket)) == []
    with pytest.raises(FileNotFoundError):
        store.read(f"{bucket}/a")


def test_has_size__local_file_cut_or_missing__is_false(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    store = Store()
    assert [store.has_size(f"file://{tmp_path}/{n}", s) for n, s in (("a", 3), ("a", 4), ("b", 3))] == [
        True,
        False,
        False,
    ]


def test_read__store_does_not_answer__is_transient(tmp_path: Path) -> None:
    class Down(SubTreeFileSystem):  # type: ignore[misc]
        def open_input_stream(self, _: str) -> None:
            raise OSError("AWS Error SLOW_DOWN")

    with pytest.raises(TransientResourceError, match="SLOW_DOWN"):
        ObjectStore(Down(str(tmp_path), LocalFileSystem())).read("s3://bucket/a")


def test_register_with__object_store__duckdb_reads_its_files(tmp_path: Path) -> None:
    store = object_store(tmp_path)
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "bucket" / "a.parquet")
    with duckdb.connect() as connection:
        store.register_with(connection)
        path = store.sql_path("s3://bucket/a.parquet")
        assert connection.sql(f"SELECT sum(x) FROM read_parquet('{path}')").fetchall() == [(3,)]


def test_read_shared_file__two_threads__have_a_position_each(tmp_path: Path) -> None:
    (tmp_path / "letters").write_bytes(b"abcdefghij")
    filesystem = ArrowFilesystem(LocalFileSystem(), "lent")
    with filesystem.open(f"lent://{tmp_path}/letters") as file, ThreadPoolExecutor(1) as other:
        assert file.seek(2) == 2
        assert other.submit(file.seek, 7).result() == 7
        assert (file.read(3), other.submit(file.read, 2).result(), file.tell()) == (b"cde", b"hi", 5)
        assert (file.seek(99), file.read(5)) == (99, b""), "nothing is beyond the end"

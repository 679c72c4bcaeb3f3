"""Rows that come encoded, or in pieces, are the same rows: versions, statistics, order and refusals."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from domain.shared.error import InvalidInput
from domain.shared.table import Column, Table
from resources.lake.client import Lake
from resources.lake.content_hash import versions_of
from resources.lake.engine import Engine
from resources.lake.error import DamagedData
from resources.lake.order import laid, ordered
from tests.unit.lake.frames import data_files, on_files

TABLE = Table(
    name="test.encoded",
    description="Words that repeat.",
    columns=(
        Column("kind", pa.string(), "x", nullable=False),
        Column("year", pa.int32(), "x", nullable=False),
        Column("number", pa.int64(), "x", nullable=False),
        Column("unit", pa.string(), "x"),
        Column("factor", pa.int64(), "x"),
    ),
    key=("kind", "year", "number"),
    partition_kind="category_year",
    partition_columns=("kind", "year"),
)
COUNT = 200_000


def rows(kind: str = "plane", start: int = 0, count: int = COUNT) -> pa.Table:
    numbers = np.arange(start, start + count)
    return pa.table(
        {
            "kind": pa.array([kind]).take(pa.array(np.zeros(count, np.int64))),
            "year": pa.array(np.full(count, 2025), pa.int32()),
            "number": pa.array(numbers),
            "unit": pa.array(["b", "a", None]).take(pa.array(numbers % 3)),
            "factor": pa.array(np.where(numbers % 7, numbers % 5, -1), mask=numbers % 11 == 0),
        },
        schema=pa.schema([pa.field(c.name, c.type, c.nullable) for c in TABLE.columns]),
    )


def encoded(frame: pa.Table) -> pa.Table:
    names = [n for n in frame.column_names if n != "number"]
    return pa.table({n: frame[n].dictionary_encode() if n in names else frame[n] for n in frame.column_names})


def kept(lake: Lake) -> pa.Table:
    return lake.query("SELECT * FROM test.encoded ORDER BY ALL").cast(rows().schema)


def test_encoded_rows_have_the_version_of_the_plain_ones() -> None:
    frame = rows()
    assert versions_of(TABLE, [encoded(frame)]) == versions_of(TABLE, [frame])
    assert versions_of(TABLE, encoded(frame).to_batches(max_chunksize=7001)) == versions_of(TABLE, [frame])


def test_encoded_rows_of_several_partitions_come_back_as_they_went(tmp_path: Path) -> None:
    lake = on_files(tmp_path, tables=(TABLE,))
    both = pa.concat_tables([encoded(rows("plane")), encoded(rows("train"))])
    lake.replace_range(TABLE.name, ["plane|2025", "train|2025"], both)
    assert kept(lake).equals(
        pa.concat_tables([rows("plane"), rows("train")]).sort_by(
            [(n, "ascending") for n in rows().column_names]
        )
    )
    again = lake.replace_range(
        TABLE.name, ["plane|2025", "train|2025"], pa.concat_tables([rows("plane"), rows("train")])
    )
    assert not again.changed


def test_pyiceberg_reads_what_was_encoded_and_its_bounds(tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    lake = on_files(tmp_path, tables=(TABLE,))
    lake.replace(TABLE.name, "plane|2025", encoded(rows()))
    url = f"sqlite:///{next(tmp_path.rglob('catalog.db'))}"
    stored = SqlCatalog("perennial", uri=url).load_table(TABLE.name)
    read = stored.scan(row_filter="unit = 'a' and factor = 4").to_arrow()
    wanted = lake.query("SELECT count(*) AS n FROM test.encoded WHERE unit = 'a' AND factor = 4")
    assert read.num_rows == wanted["n"][0].as_py() > 0
    assert read.schema.field("unit").type in (pa.string(), pa.large_string())
    [file] = stored.inspect.files().to_pylist()
    bounds = {name: file["readable_metrics"][name] for name in ("unit", "factor", "number")}
    assert (bounds["unit"]["lower_bound"], bounds["unit"]["upper_bound"]) == ("a", "b")
    assert (bounds["factor"]["lower_bound"], bounds["factor"]["upper_bound"]) == (-1, 4)
    assert bounds["number"]["upper_bound"] == COUNT - 1
    assert bounds["factor"]["null_value_count"] == rows()["factor"].null_count


def test_a_key_that_repeats_is_refused_though_the_rows_are_in_order(tmp_path: Path) -> None:
    lake = on_files(tmp_path, tables=(TABLE,))
    twice = pa.concat_tables([rows(count=50), rows(start=49, count=50)])
    with pytest.raises(InvalidInput, match="not unique"):
        lake.replace(TABLE.name, "plane|2025", encoded(twice))


def test_a_value_that_stands_twice_in_its_list_is_one_value(tmp_path: Path) -> None:
    lake = on_files(tmp_path, tables=(TABLE,))
    frame = rows(count=4)
    units = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1], pa.int8()), pa.array(["a", "a"]))
    lake.replace(TABLE.name, "plane|2025", frame.set_column(3, "unit", units))
    assert kept(lake)["unit"].to_pylist() == ["a"] * 4


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_pieces_of_threads_that_took_turns_are_put_in_order_without_sorting(threads: int) -> None:
    frame, size = encoded(rows()), 4096
    pieces = [frame.slice(start, size) for start in range(0, COUNT, size)]
    answered = pa.concat_tables([p for n in range(threads) for p in pieces[n::threads]])
    found = laid(TABLE, answered)
    assert found.rows.equals(pa.concat_tables(pieces))
    assert (found.in_order, found.distinct) == (True, True)


def test_pieces_of_several_partitions_are_put_in_order_without_sorting() -> None:
    """As a run hands them over: partition after partition, each as its threads answered."""
    frames, size = [encoded(rows(kind, count=20_000)) for kind in ("train", "plane", "road")], 4096
    pieces = [[f.slice(start, size) for start in range(0, f.num_rows, size)] for f in frames]
    answered = pa.concat_tables([p for of in pieces for n in range(2) for p in of[n::2]]).unify_dictionaries()
    found = laid(TABLE, answered)
    assert found.rows["kind"].to_pylist() == ["plane"] * 20_000 + ["road"] * 20_000 + ["train"] * 20_000
    assert (found.in_order, found.distinct) == (True, True)


def test_rows_in_any_order_are_sorted_by_their_words() -> None:
    luck = np.random.default_rng(7)
    both = encoded(pa.concat_tables([rows("train"), rows("plane")]))
    mixed = both.take(pa.array(luck.permutation(both.num_rows)))
    found = laid(TABLE, mixed)
    assert found.rows is mixed
    assert (found.in_order, found.distinct) == (False, False)
    keys = ordered(TABLE, mixed).select(["kind", "number"])
    assert keys["kind"].to_pylist() == ["plane"] * COUNT + ["train"] * COUNT
    numbers = keys["number"].to_pylist()
    assert all(a < b for a, b in pairwise(numbers[:COUNT]))
    assert numbers[:COUNT] == numbers[COUNT:]


def test_files_of_the_partitions_asked_for_are_read_without_spelling_out_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = on_files(tmp_path, tables=(TABLE,))
    for kind in ("plane", "train"):
        lake.replace(TABLE.name, f"{kind}|2025", rows(kind))
    columns = [n for n in rows().column_names if n != "year"]
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "connect", None)
        found = lake.read(TABLE.name, ["train|2025"], columns)
    assert found["unit"].num_chunks > 1, "row groups"
    assert all(c.dictionary.equals(found["unit"].chunk(0).dictionary) for c in found["unit"].chunks)
    assert found.cast(rows().select(columns).schema).equals(rows("train").select(columns))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    lake = on_files(tmp_path, tables=(TABLE,))
    lake.replace(TABLE.name, "plane|2025", rows())
    [file] = data_files(tmp_path, TABLE)
    whole = file.read_bytes()
    for broken in (whole[: len(whole) // 2], whole[:20_000] + bytes(2000) + whole[22_000:], None):
        file.unlink() if broken is None else file.write_bytes(broken)
        with pytest.raises(DamagedData, match=r"plane\|2025"):
            lake.read(TABLE.name, ["plane|2025"], ["unit", "number", "factor", "kind"])


def written_anew(lake: Lake, home: Path, **settings: Any) -> Path:
    """The partition's file as another writer lays it out: each row group has its own list of words."""
    lake.replace(TABLE.name, "plane|2025", rows(count=20_000))
    [file] = data_files(home, TABLE)
    whole = pq.read_table(file)
    names = pa.array([f"unit {n % 2003}" for n in range(whole.num_rows)])
    pq.write_table(whole.set_column(3, whole.schema.field("unit"), names), file, **settings)
    return file


def answer(ask: Callable[[], pa.Table]) -> dict[str, list[Any]] | None:
    """None if the file is told to be damaged."""
    try:
        return ask().to_pydict()
    except DamagedData:
        return None


def test_a_flipped_bit_gives_no_other_rows_than_a_query_does(tmp_path: Path) -> None:
    """Arrow looks neither whether a number has a word in its list, nor whether words are text."""
    lake, luck = on_files(tmp_path, tables=(TABLE,)), np.random.default_rng(5)
    file = written_anew(lake, tmp_path, row_group_size=5000, compression="none", use_dictionary=["unit"])
    whole = file.read_bytes()
    column = pq.ParquetFile(file).metadata.row_group(2).column(3)
    told = 0
    for offset in luck.integers(0, column.total_compressed_size, 150).tolist():
        rotten = bytearray(whole)
        rotten[column.dictionary_page_offset + offset] ^= 1 << (offset % 8)
        file.write_bytes(rotten)
        read = answer(lambda: lake.read(TABLE.name, ["plane|2025"], ["number", "unit"]))
        assert read == answer(lambda: lake.query("SELECT number, unit FROM test.encoded")), offset
        told += read is None
    assert told > 10


def test_words_that_arrow_cannot_take_as_a_list_are_read_all_the_same(tmp_path: Path) -> None:
    lake = on_files(tmp_path, tables=(TABLE,))
    delta = {"number": "PLAIN", "unit": "DELTA_LENGTH_BYTE_ARRAY"}
    written_anew(lake, tmp_path, use_dictionary=False, column_encoding=delta)
    found = lake.read(TABLE.name, ["plane|2025"], ["number", "unit"])
    assert found["unit"].to_pylist() == [f"unit {n % 2003}" for n in range(20_000)]


def test_what_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    lake = on_files(tmp_path, tables=(TABLE,))
    lake.replace(TABLE.name, "plane|2025", rows())
    with pytest.raises(InvalidInput, match=r"has no columns \['unti'\]"):
        lake.read(TABLE.name, ["plane|2025"], ["unti"])
    with pytest.raises(InvalidInput, match="plain"):
        lake.read(TABLE.name, ["plane|2025", "plain"], ["unit"])

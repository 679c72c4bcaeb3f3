"""The version of rows: their count and an order-independent 64-bit hash of their content.

Written out here instead of borrowed from an engine, because versions are kept for years in ledgers and
run metadata: DuckDB's own `hash()` may change with every release and would make the whole lake look
edited. Per column the value bits are mixed with a seed taken from the column's name; a row is the mixed
sum of its columns; a partition is the sum of its rows. NULLs add nothing, so a column added later
(NULL in every old row) leaves old versions as they are, and the order of rows, columns and files is free.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache, partial
from hashlib import blake2b
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from domain.shared.parallel import in_parallel
from domain.shared.table import Table, Version
from resources.lake.layout import partition_key

_Bits = npt.NDArray[np.uint64]
_AT_ONCE = 1 << 16
_WHOLE = (1 << 64) - 1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def versions_of(table: Table, batches: Iterable[pa.RecordBatch | pa.Table]) -> dict[str, Version]:
    """The version of every partition that has rows in the batches."""
    rows: dict[str, int] = {}
    sums: dict[str, int] = {}
    for batch in batches:
        for found in in_parallel(partial(_of_piece, table), _pieces(batch)):
            for partition, count, total in found:
                rows[partition] = rows.get(partition, 0) + count
                sums[partition] = (sums.get(partition, 0) + total) & _WHOLE
    return {p: Version(rows=rows[p], digest=f"{sums[p]:016x}") for p in rows}


def _pieces(batch: pa.RecordBatch | pa.Table) -> Iterable[pa.RecordBatch]:
    """Few enough rows for the processor's cache: whole columns would go to memory and back for every step."""
    whole = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    return (piece for piece in whole.to_batches(max_chunksize=_AT_ONCE) if piece.num_rows)


def _of_piece(table: Table, piece: pa.RecordBatch) -> list[tuple[str, int, int]]:
    with np.errstate(over="ignore"):
        return list(_by_partition(table, piece, _row_hashes(piece)))


def _by_partition(table: Table, batch: pa.RecordBatch, hashes: _Bits) -> Iterable[tuple[str, int, int]]:
    encoded = [batch.column(c).dictionary_encode() for c in table.partition_columns]
    shape = tuple(len(e.dictionary) for e in encoded)
    if prod(shape) == 1:
        yield (
            partition_key([e.dictionary[0].as_py() for e in encoded]),
            len(hashes),
            int(hashes.sum(dtype=np.uint64)),
        )
        return
    labels = np.ravel_multi_index(tuple(e.indices.to_numpy(zero_copy_only=False) for e in encoded), shape)
    counts = np.bincount(labels, minlength=prod(shape))
    totals = np.zeros(prod(shape), dtype=np.uint64)
    np.add.at(totals, labels, hashes)
    values = product(*(e.dictionary.to_pylist() for e in encoded))
    for parts, count, total in zip(values, counts, totals, strict=True):
        if count:
            yield partition_key(parts), int(count), int(total)


def _row_hashes(batch: pa.RecordBatch) -> _Bits:
    total = np.full(batch.num_rows, _GOLDEN, dtype=np.uint64)
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        if values.null_count == len(values):
            continue
        mixed = _mix(_bits(values) ^ _seed(name))
        if values.null_count:
            mixed = np.where(values.is_valid().to_numpy(zero_copy_only=False), mixed, np.uint64(0))
        total += mixed
    return _mix(total)


def _bits(values: pa.Array) -> Any:
    """Each value as 64 unsigned bits; what stands where a NULL is does not matter."""
    kind = values.type
    if pa.types.is_floating(kind):
        doubles = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 is 0.0
        doubles[np.isnan(doubles)] = np.nan  # one bit pattern for every NaN
        return doubles.view(np.uint64)
    if pa.types.is_boolean(kind):
        return values.cast(pa.uint8()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.uint64)
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    if pa.types.is_integer(values.type) or pa.types.is_temporal(values.type):
        return values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
    if pa.types.is_decimal(kind):
        values = values.cast(pa.string())
    encoded = values.dictionary_encode()
    words = np.array([_word(v) for v in encoded.dictionary.to_pylist()], dtype=np.uint64)
    return words[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)]


@lru_cache(maxsize=200_000)  # stocks' codes come again every day
def _word(value: str | bytes) -> int:
    raw = value.encode() if isinstance(value, str) else value
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), "little")


@cache
def _seed(name: str) -> np.uint64:
    return np.uint64(_word(name))


def _mix(bits: _Bits) -> _Bits:
    """The finaliser of SplitMix64: every input bit moves every output bit."""
    bits = bits + _GOLDEN
    bits ^= bits >> np.uint64(30)
    bits *= _MIX_1
    bits ^= bits >> np.uint64(27)
    bits *= _MIX_2
    bits ^= bits >> np.uint64(31)
    return bits

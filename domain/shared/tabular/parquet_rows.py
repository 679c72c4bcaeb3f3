"""The rows of a Parquet file, as texts: what a program wrote is checked as what a person typed."""

from __future__ import annotations

from collections.abc import Collection
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from domain.shared.tabular.header import header_names
from domain.shared.tabular.problems import refused
from domain.shared.tabular.rows import Cells, tidy, without_empty_rows

MOST_ROWS = 20_000_000
"""A few bytes of Parquet can be a billion rows."""


def read_parquet(source: BinaryIO, known: Collection[str]) -> Cells:
    import pyarrow.parquet as pq

    source.seek(0)
    try:
        file = pq.ParquetFile(source)
        if file.metadata.num_rows > MOST_ROWS:
            raise refused("too_many_rows", f"has {file.metadata.num_rows:,} rows: split it")
        names = header_names(file.schema_arrow.names, 0, known)
        frame = file.read()
        frame.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0]
        raise refused("not_a_table", f"is corrupt and cannot be read as Parquet: {reason}") from None
    columns = [_as_text(name, column) for name, column in zip(names, frame.columns, strict=True)]
    columns, lines = without_empty_rows(columns, pa.array(range(1, frame.num_rows + 1), pa.int64()))
    numeric = frozenset(n for n, t in zip(names, frame.schema.types, strict=True) if _is_number(t))
    return Cells(pa.Table.from_arrays(columns, names=names), lines, numeric=numeric)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _as_text(name: str, column: pa.ChunkedArray) -> pa.Array:
    try:
        texts = pc.cast(column, pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise refused(
            "not_a_table", f"is of type {column.type}, which is no cell of a table", column=name
        ) from None
    return tidy(pc.fill_null(texts, "").combine_chunks())

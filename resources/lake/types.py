"""The column types a lake table may have, by Iceberg's names, which DuckDB understands too."""

from __future__ import annotations

import pyarrow as pa

from domain.shared.error import InvalidInput

_NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.time64("us"): "time",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", tz="UTC"): "timestamptz",
    pa.string(): "string",
    pa.binary(): "binary",
}


def iceberg_type(table: str, column: str, arrow: pa.DataType) -> str:
    """Iceberg's name of an Arrow type, as table metadata spells it."""
    if pa.types.is_decimal128(arrow):
        return f"decimal({arrow.precision}, {arrow.scale})"
    if (name := _NAMES.get(arrow)) is None:
        raise InvalidInput(
            f"{table}.{column}: the lake has no column type {arrow}",
            remedy=f"use one of {', '.join(str(t) for t in _NAMES)} or decimal128",
        )
    return name

"""The column types a lake table may have, in Arrow's, Iceberg's and DuckDB's words."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from domain.shared.error import InvalidInput

_SIMPLE: dict[pa.DataType, str] = {
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
_DUCKDB = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "uuid": "UUID",
}
_DECIMAL = re.compile(r"^decimal\((\d+),\s*(\d+)\)$")


def iceberg_type(table: str, column: str, arrow: pa.DataType) -> str:
    """Iceberg's name of an Arrow type, as table metadata spells it."""
    if pa.types.is_decimal128(arrow):
        return f"decimal({arrow.precision}, {arrow.scale})"
    if (name := _SIMPLE.get(arrow)) is None:
        raise InvalidInput(
            f"{table}.{column}: the lake does not keep {arrow}",
            remedy=f"use one of {', '.join(str(t) for t in _SIMPLE)} or decimal128",
        )
    return name


def duckdb_type(iceberg: Any) -> str:
    """DuckDB's name of an Iceberg type read from table metadata."""
    if isinstance(iceberg, str):
        if match := _DECIMAL.match(iceberg):
            return f"DECIMAL({match[1]},{match[2]})"
        if iceberg in _DUCKDB:
            return _DUCKDB[iceberg]
        if iceberg.startswith("fixed["):
            return "BLOB"
    raise InvalidInput(
        f"a column of Iceberg type {iceberg!r} cannot be read", remedy="read this table with Trino"
    )

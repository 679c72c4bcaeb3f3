"""How partition keys, partition columns, types and file groups of a table relate.

A partition is what callers replace (a day); a group is what Iceberg lays out in one folder (its month).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from domain.shared.error import InvalidInput
from domain.shared.table import ALL, Table

_TYPES: dict[pa.DataType, str] = {
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
"""The column types a lake table may have, by Iceberg's names, which DuckDB understands too."""
_PARTITION_TYPES: dict[str, tuple[pa.DataType, ...]] = {
    "day": (pa.date32(),),
    "year": (pa.int32(),),
    "category": (pa.string(),),
    "category_year": (pa.string(), pa.int32()),
    "none": (),
}
_SEPARATOR = "|"
"""Between the two parts of a key, as Dagster writes it."""
_NAME = re.compile(r"^[a-z_][a-z0-9_]*$")


def check_table(table: Table) -> None:
    """Refuse a definition the lake cannot keep."""
    if not all(_NAME.match(part) for part in table.name.split(".")) or table.name.count(".") != 1:
        raise InvalidInput(
            f"{table.name!r} is no table name: two lower-case words joined by a dot are needed"
        )
    types = {c.name: c.type for c in table.columns}
    for name, kind in types.items():
        iceberg_type(table.name, name, kind)
    if len({name.lower() for name in types}) != len(table.columns):
        raise InvalidInput(f"{table.name}: column names are not unique")
    if missing := [c for c in (*table.key, *table.sort_order) if c not in types]:
        raise InvalidInput(f"{table.name}: key or sort names unknown columns {missing}")
    if not table.key:
        raise InvalidInput(f"{table.name}: a key is needed")
    wanted = _PARTITION_TYPES[table.partition_kind]
    if tuple(types.get(c) for c in table.partition_columns) != wanted:
        raise InvalidInput(
            f"{table.name}: a {table.partition_kind} table needs partition columns of type "
            f"{', '.join(map(str, wanted)) or 'none at all'}"
        )


def iceberg_type(table: str, column: str, arrow: pa.DataType) -> str:
    """Iceberg's name of an Arrow type, as table metadata spells it."""
    if pa.types.is_decimal128(arrow):
        return f"decimal({arrow.precision}, {arrow.scale})"
    if (name := _TYPES.get(arrow)) is None:
        raise InvalidInput(
            f"{table}.{column}: the lake has no column type {arrow}",
            remedy=f"use one of {', '.join(str(t) for t in _TYPES)} or decimal128",
        )
    return name


def parse_partition(table: Table, partition: str) -> tuple[date | int | str, ...]:
    """The values rows of this partition have in the partition columns."""
    try:
        if table.partition_kind == "day":
            if (day := date.fromisoformat(partition)).isoformat() == partition:
                return (day,)
        elif table.partition_kind == "year":
            if str(int(partition)) == partition:
                return (int(partition),)
        elif table.partition_kind == "category_year":
            category, separator, year = partition.partition(_SEPARATOR)
            if category and separator and str(int(year)) == year:
                return (category, int(year))
        elif table.partition_kind == "category" and partition:
            return (partition,)
        elif partition == ALL:
            return ()
    except ValueError:
        pass  # raised below, with the table's name
    raise InvalidInput(f"{table.name}: {partition!r} is no {table.partition_kind} partition key")


def partition_key(values: Iterable[Any]) -> str:
    """The key of the partition columns' values."""
    parts = [v.isoformat() if isinstance(v, date) else str(v) for v in values]
    return _SEPARATOR.join(parts) if parts else ALL


def group_of(table: Table, partition: str) -> str | None:
    """The layout group a partition's rows live in; None for unpartitioned tables."""
    if table.partition_kind == "none":
        return None
    return partition[:7] if table.partition_kind == "day" else partition


def group_from_layout(table: Table, values: Sequence[Any]) -> str | None:
    """The group name of a file's Iceberg partition values (months are counted from 1970-01)."""
    if table.partition_kind == "none" or any(v is None for v in values):
        return None
    if table.partition_kind == "day":
        return f"{1970 + values[0] // 12:04d}-{values[0] % 12 + 1:02d}"
    return partition_key(values)


def sql_filter(table: Table, partitions: Iterable[str], *, negate: bool = False) -> str:
    """A SQL condition that selects (or excludes) the rows of some partitions."""
    columns = table.partition_columns
    if not columns:
        return "false" if negate else "true"
    wanted = [[_literal(v) for v in parse_partition(table, p)] for p in sorted(set(partitions))]
    if not wanted:
        return "true" if negate else "false"
    listed = ", ".join(_row(values) for values in wanted)
    named = _row([f'"{column}"' for column in columns])
    return f"{named} {'NOT ' if negate else ''}IN ({listed})"


def _row(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _literal(value: date | int | str) -> str:
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"

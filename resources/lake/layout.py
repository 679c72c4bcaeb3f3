"""How partition keys, partition columns and file groups of a table relate.

A partition is what callers replace (a day); a group is what Iceberg lays out in one folder (its month).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from typing import Any

import pyarrow as pa

from domain.shared.error import InvalidInput
from domain.shared.table import ALL, Table

_PARTITION_TYPES = {"day": pa.date32(), "year": pa.int32(), "category": pa.string()}
_WORD = re.compile(r"^[a-z_][a-z0-9_]*$")


def check_table(table: Table) -> None:
    """Refuse a definition the lake cannot keep."""
    if not all(_WORD.match(part) for part in table.name.split(".")) or table.name.count(".") != 1:
        raise InvalidInput(
            f"{table.name!r} is no table name: two lower-case words joined by a dot are needed"
        )
    types = {c.name: c.type for c in table.columns}
    if len({name.lower() for name in types}) != len(table.columns):
        raise InvalidInput(f"{table.name}: column names are not unique")
    if missing := [c for c in (*table.key, *table.sort_order) if c not in types]:
        raise InvalidInput(f"{table.name}: key or sort names unknown columns {missing}")
    if not table.key:
        raise InvalidInput(f"{table.name}: a key is needed")
    if table.partition_kind == "none":
        return
    wanted = _PARTITION_TYPES[table.partition_kind]
    if table.partition_column is None or types.get(table.partition_column) != wanted:
        raise InvalidInput(
            f"{table.name}: a {table.partition_kind} table needs a partition column of type {wanted}"
        )


def partition_column(table: Table) -> str | None:
    return None if table.partition_kind == "none" else table.partition_column


def parse_partition(table: Table, partition: str) -> date | int | str:
    """The value rows of this partition have in the partition column."""
    try:
        if table.partition_kind == "day":
            parsed = date.fromisoformat(partition)
            if parsed.isoformat() == partition:
                return parsed
        elif table.partition_kind == "year":
            if str(int(partition)) == partition:
                return int(partition)
        elif (table.partition_kind == "category" and partition) or partition == ALL:
            return partition
    except ValueError:
        pass  # said below, with the table's name
    raise InvalidInput(f"{table.name}: {partition!r} is no {table.partition_kind} partition key")


def partition_key(value: Any) -> str:
    """The key of a partition column's value."""
    return value.isoformat() if isinstance(value, date) else str(value)


def group_of(table: Table, partition: str) -> str | None:
    """The layout group a partition's rows live in; None for unpartitioned tables."""
    if table.partition_kind == "none":
        return None
    return partition[:7] if table.partition_kind == "day" else partition


def group_from_layout(table: Table, value: Any) -> str | None:
    """The group name of an Iceberg partition value (months are counted from 1970-01)."""
    if table.partition_kind == "none" or value is None:
        return None
    if table.partition_kind == "day":
        return f"{1970 + value // 12:04d}-{value % 12 + 1:02d}"
    return str(value)


def sql_literal(table: Table, partition: str) -> str:
    """The partition's value as a SQL literal."""
    value = parse_partition(table, partition)
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def sql_filter(table: Table, partitions: Iterable[str], *, negate: bool = False) -> str:
    """A SQL condition that selects (or excludes) the rows of some partitions."""
    column = partition_column(table)
    if column is None:
        return "false" if negate else "true"
    literals = ", ".join(sql_literal(table, p) for p in sorted(set(partitions)))
    if not literals:
        return "true" if negate else "false"
    return f'"{column}" {"NOT " if negate else ""}IN ({literals})'

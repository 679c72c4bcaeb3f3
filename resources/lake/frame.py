"""What a frame must be before it is written: exact columns and types, no missing or repeated keys.

`pyarrow.compute` is imported where it is used: its import takes longer than an observation, which needs none
of it.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from domain.shared.error import InvalidInput
from domain.shared.table import ALL, Column, Table
from resources.lake.layout import parse_partition, partition_key

_SHOWN = 5


def conform(table: Table, data: pa.Table) -> pa.Table:
    """The frame in the table's own columns and types, or InvalidInput with what is wrong."""
    names, wanted = data.column_names, table.schema.names
    missing = [c for c in wanted if c not in names]
    unexpected = [c for c in names if c not in wanted]
    repeated = sorted({c for c in names if names.count(c) > 1})
    if missing or unexpected or repeated:
        raise InvalidInput(
            f"{table.name}: columns missing {missing}, unexpected {unexpected}, repeated {repeated}"
        )
    columns = [_column(table, column, data.column(column.name)) for column in table.columns]
    fields = [pa.field(c.name, v.type, c.nullable) for c, v in zip(table.columns, columns, strict=True)]
    frame = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    _check_key(table, frame)
    return frame


def check_partitions(table: Table, present: Collection[str], allowed: Collection[str]) -> None:
    """Every partition that has rows must be one of the allowed."""
    for partition in allowed:
        parse_partition(table, partition)
    if others := sorted(set(present) - set(allowed)):
        raise InvalidInput(
            f"{table.name}: {', '.join(table.partition_columns)} has rows of {_some(others)}, "
            f"which are not among the partitions to write ({_some(sorted(allowed))})"
        )


def partitions_of(table: Table, frame: pa.Table) -> list[str]:
    """The partitions that have rows in a frame, sorted."""
    names = list(table.partition_columns)
    if not names:
        return [ALL] if frame.num_rows else []
    found = frame.select(names).group_by(names).aggregate([])
    return sorted(map(partition_key, zip(*(found.column(name).to_pylist() for name in names), strict=True)))


def ordered(table: Table, frame: pa.Table) -> pa.Table:
    """The rows in the table's sort order; not copied if they have it already."""
    import pyarrow.compute as pc

    indices = pc.sort_indices(frame, [(name, "ascending") for name in table.sort_order]).to_numpy()
    return frame if bool(np.all(indices[1:] > indices[:-1])) else frame.take(pa.array(indices))


def _column(table: Table, column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        cast = values.cast(column.type, safe=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        text = str(error).splitlines()[0]
        raise InvalidInput(
            f"{table.name}.{column.name}: values of type {values.type} do not fit {column.type}: {text}"
        ) from error
    # A key may have a part that is NULL where its column allows it: NULL equals NULL in a key.
    required = not column.nullable or column.name in table.partition_columns
    if required and cast.null_count:
        row = cast.is_null().index(True).as_py()
        raise InvalidInput(
            f"{table.name}.{column.name}: {cast.null_count} values are NULL, first in row {row}"
        )
    return cast


def _check_key(table: Table, frame: pa.Table) -> None:
    keys = frame.select(list(dict.fromkeys(table.key)))
    counts = keys.group_by(keys.column_names).aggregate([([], "count_all")])
    if counts.num_rows == frame.num_rows:
        return
    import pyarrow.compute as pc

    repeated = counts.filter(pc.greater(counts.column("count_all"), 1)).slice(0, _SHOWN)
    shown = [tuple(str(row[k]) for k in keys.column_names) for row in repeated.to_pylist()]
    raise InvalidInput(f"{table.name}: the key {table.key} is not unique, e.g. {shown}")


def _some(names: Collection[str]) -> str:
    shown = list(names)[:_SHOWN]
    return ", ".join(shown) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")

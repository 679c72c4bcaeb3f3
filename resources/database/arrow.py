"""Tables of the database as Arrow, for people who ask in SQL. Read when called, never at import."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from sqlalchemy import Boolean, DateTime, Engine, Integer, Table, select
from sqlalchemy.types import JSON, TypeDecorator, TypeEngine

from domain.shared.error import InvalidInput
from resources.database.engine import has_branch, reading


def read_arrow(engine: Engine, table: Table) -> pa.Table:
    """The whole table, JSON columns as text. A table of an optional branch names it in its `info`."""
    with reading(engine) as connection:
        if (branch := table.info.get("branch")) and not has_branch(connection, branch):
            raise InvalidInput(
                f"there is no table {table.name}: {branch} were taken away",
                reason_code="branch_taken_away",
                remedy=f"`perennial migrate --up {branch}` brings them back, empty",
            )
        rows = connection.execute(select(table)).all()
    columns = list(zip(*rows, strict=True)) or [()] * len(table.columns)
    arrays = [_array(column.type, values) for column, values in zip(table.columns, columns, strict=True)]
    return pa.table(arrays, names=[column.name for column in table.columns])


_TYPES = {DateTime: pa.timestamp("us", tz="UTC"), Boolean: pa.bool_(), Integer: pa.int64()}


def _array(column_type: TypeEngine[Any], values: tuple[Any, ...]) -> pa.Array:
    plain = column_type.impl if isinstance(column_type, TypeDecorator) else column_type
    if isinstance(plain, JSON):
        values = tuple(json.dumps(value, ensure_ascii=False, sort_keys=True) for value in values)
    found = (arrow for sql, arrow in _TYPES.items() if isinstance(plain, sql))
    return pa.array(values, next(found, pa.string()))

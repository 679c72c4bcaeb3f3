"""The ledger's tables as Arrow, for people who ask in SQL. Read when called, never at import."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
from sqlalchemy import Boolean, DateTime, Engine, Integer, Table, select
from sqlalchemy.types import JSON, TypeDecorator, TypeEngine

from resources.ledger.engine import reading
from resources.ledger.schema import (
    feed_place,
    partition_fact,
    pipeline_member,
    source_freshness,
    upload,
    work,
    work_event,
    year_lock,
)

TABLES = {
    "market.source_freshness": source_freshness,
    "ops.work": work,
    "ops.work_event": work_event,
    "ops.partition_fact": partition_fact,
    "ops.pipeline_member": pipeline_member,
    "carbon.upload": upload,
    "carbon.feed_place": feed_place,
    "carbon.year_lock": year_lock,
}


def views(engine: Engine) -> dict[str, Callable[[], pa.Table]]:
    return {name: partial(read_arrow, engine, table) for name, table in TABLES.items()}


def read_arrow(engine: Engine, table: Table) -> pa.Table:
    """The whole table, newest schema, JSON columns as text."""
    with reading(engine) as connection:
        rows = connection.execute(select(table)).all()
    columns = list(zip(*rows, strict=True)) or [()] * len(table.columns)
    arrays = [_array(column.type, values) for column, values in zip(table.columns, columns, strict=True)]
    return pa.table(arrays, names=[column.name for column in table.columns])


def _array(column_type: TypeEngine[Any], values: tuple[Any, ...]) -> pa.Array:
    plain = column_type.impl if isinstance(column_type, TypeDecorator) else column_type
    if isinstance(plain, JSON):
        texts = [json.dumps(value, ensure_ascii=False, sort_keys=True) for value in values]
        return pa.array(texts, pa.string())
    if isinstance(plain, DateTime):
        return pa.array(values, pa.timestamp("us", tz="UTC"))
    if isinstance(plain, Boolean):
        return pa.array(values, pa.bool_())
    if isinstance(plain, Integer):
        return pa.array(values, pa.int64())
    return pa.array(values, pa.string())

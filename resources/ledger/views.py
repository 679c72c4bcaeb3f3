"""The ledger's tables as Arrow, for people who ask in SQL. Read when called, never at import."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
from sqlalchemy import Engine

from resources.database.arrow import read_arrow
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

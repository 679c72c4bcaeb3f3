"""Throughput, duration and failures of each kind of work; explained in `sql/kind_statistics.sql`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Engine, Float, bindparam, text

from domain.shared.error import InvalidInput
from domain.shared.packaged import packaged
from resources.database.engine import reading
from resources.database.schema import UtcDateTime

SECONDS = {
    "sqlite": "(julianday(finished_at) - julianday(started_at)) * 86400.0",
    "postgresql": "CAST(EXTRACT(EPOCH FROM (finished_at - started_at)) AS double precision)",
}


@dataclass(frozen=True, slots=True)
class KindStatistics:
    """Of the work of one kind that ended in a window of time. Durations are None where nothing was
    completed, the failure rate where nothing was tried to the end."""

    kind: str
    completed: int
    failed: int
    skipped: int
    cancelled: int
    completed_per_hour: float
    median_seconds: float | None
    p95_seconds: float | None
    failure_rate: float | None


def kind_statistics(engine: Engine, since: datetime, until: datetime) -> list[KindStatistics]:
    """By kind, in the order of their names. `until` is not part of the window."""
    if until <= since:
        raise InvalidInput(f"a window from {since.isoformat()} to {until.isoformat()} has no length")
    sql = packaged(__file__, "kind_statistics").format(seconds=SECONDS[engine.dialect.name])
    query = text(sql).bindparams(
        bindparam("since", since, type_=UtcDateTime()),
        bindparam("until", until, type_=UtcDateTime()),
        bindparam("hours", (until - since) / timedelta(hours=1), type_=Float()),
    )
    with reading(engine) as connection:
        return [KindStatistics(**row) for row in connection.execute(query).mappings()]

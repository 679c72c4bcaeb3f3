"""Unfinished work by kind, and what happened since a moment: for monitoring. Finished rows cost nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import inf

from sqlalchemy import Engine, func, select, text

from domain.shared.packaged import packaged
from resources.database.engine import reading
from resources.database.schema import UtcDateTime
from resources.ledger.kind_statistics import SECONDS
from resources.ledger.schema import work_event

BOUNDS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 6 * 3600.0, 24 * 3600.0, inf)
"""Seconds: the bounds between which durations are counted."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Work of one kind and status; `oldest` was created first."""

    kind: str
    status: str
    number: int
    oldest: datetime


@dataclass(frozen=True, slots=True)
class Happened:
    """So many events of one kind of work; `bucket` and `seconds` are of work that began and ended."""

    kind: str
    event: str
    status: str
    reason_code: str
    failed: bool
    """Whether an error is recorded."""
    bucket: int | None
    number: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Activity:
    engine: Engine

    def unfinished(self) -> list[Unfinished]:
        query = text(packaged(__file__, "unfinished")).columns(created_at=UtcDateTime())
        with reading(self.engine) as connection:
            return [Unfinished(*row) for row in connection.execute(query)]

    def newest_event(self) -> int:
        with reading(self.engine) as connection:
            return int(connection.execute(select(func.coalesce(func.max(work_event.c.id), 0))).scalar_one())

    def between(self, after: int, until: int) -> list[Happened]:
        """What the events after one event and up to another tell."""
        seconds = SECONDS[self.engine.dialect.name]
        cases = " ".join(f"WHEN seconds <= {bound} THEN {n}" for n, bound in enumerate(BOUNDS[:-1]))
        bucket = f"CASE WHEN seconds IS NULL THEN NULL {cases} ELSE {len(BOUNDS) - 1} END"
        sql = packaged(__file__, "events_between").format(seconds=seconds, bucket=bucket)
        with reading(self.engine) as connection:
            return [Happened(*row) for row in connection.execute(text(sql), {"after": after, "until": until})]

"""What applications beside us said they hold: places, each with the version of its content. Facts only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, select, update

from resources.database.engine import reading, writing
from resources.database.statements import insert_into
from resources.ledger.schema import feed_place


@dataclass(frozen=True, slots=True, order=True)
class FeedPlace:
    """`topic` says what it speaks of beside its year, as of an upload."""

    source: str
    institution: str
    topic: str
    year: int
    version: str


_COLUMNS = [feed_place.c[field.name] for field in fields(FeedPlace)]
_KEY = _COLUMNS[:-1]


@dataclass(frozen=True, slots=True)
class FeedPlaces:
    engine: Engine

    def hear(self, told: Iterable[FeedPlace], asked_at: datetime) -> None:
        """Keep what was told when it was asked for; of several words on one place the last counts.

        An answer that was asked for earlier than one that is kept may be older, and changes nothing.
        """
        newest = {astuple(one)[:-1]: one for one in told}
        if not newest:
            return
        # Always in one order: rows locked in different orders would deadlock.
        rows = [_values(newest[key]) | {"heard_at": asked_at} for key in sorted(newest)]
        statement = insert_into(feed_place, self.engine)
        new = statement.excluded
        upsert = statement.on_conflict_do_update(
            index_elements=_KEY,
            set_={"version": new.version, "heard_at": new.heard_at},
            where=feed_place.c.heard_at <= new.heard_at,
        )
        with writing(self.engine) as connection:
            connection.execute(upsert, rows)

    def read(self, asked: FeedPlace, version: str) -> None:
        """It was read, and is this version by now. Whatever was heard of it meanwhile stays to be read."""
        same = [column == getattr(asked, column.name) for column in _COLUMNS]
        with writing(self.engine) as connection:
            connection.execute(update(feed_place).where(*same).values(version=version))

    def all(self) -> list[FeedPlace]:
        with reading(self.engine) as connection:
            return [FeedPlace(*row) for row in connection.execute(select(*_COLUMNS).order_by(*_KEY))]


def _values(one: FeedPlace) -> dict[str, Any]:
    return {field.name: getattr(one, field.name) for field in fields(FeedPlace)}

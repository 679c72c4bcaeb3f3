"""When each source last answered and last failed. What that means is decided by the domain."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Engine, select

from domain.shared.clock import Clock
from domain.shared.health import SourceFreshness
from resources.database.engine import reading, writing
from resources.database.statements import insert_into
from resources.ledger.outcome import cause_of
from resources.ledger.schema import source_freshness

_COLUMNS = [source_freshness.c[column.name] for column in fields(SourceFreshness)]


@dataclass(frozen=True, slots=True)
class Freshness:
    engine: Engine
    clock: Clock

    def succeeded(self, source: str, rows_latest: int | None, rows_today: int | None) -> None:
        self._record(source, last_success=self.clock(), rows_latest=rows_latest, rows_today=rows_today)

    def failed(self, source: str, error: BaseException | str) -> None:
        self._record(source, last_failure=self.clock(), last_error=cause_of(error).error)

    def all(self, domain: str = "") -> list[SourceFreshness]:
        """Of every source, or of those whose names begin with `domain` and a point."""
        query = select(*_COLUMNS).order_by(source_freshness.c.source)
        if domain:
            query = query.where(source_freshness.c.source.startswith(f"{domain}.", autoescape=True))
        with reading(self.engine) as connection:
            return [SourceFreshness(*row) for row in connection.execute(query)]

    def _record(self, source: str, **values: Any) -> None:
        values["updated_at"] = self.clock()
        statement = insert_into(source_freshness, self.engine).values(source=source, **values)
        with writing(self.engine) as connection:
            connection.execute(
                statement.on_conflict_do_update(index_elements=[source_freshness.c.source], set_=values)
            )

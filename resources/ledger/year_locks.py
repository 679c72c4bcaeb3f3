"""Years that nobody may change, because their report was published: who locked them, and why."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime

from sqlalchemy import Engine, insert, select, update
from sqlalchemy.exc import IntegrityError

from domain.shared.clock import Clock
from domain.shared.error import InvalidInput
from resources.ledger.engine import reading, writing
from resources.ledger.schema import year_lock


@dataclass(frozen=True, slots=True)
class YearLock:
    id: int
    year: int
    locked_at: datetime
    locked_by: str
    reason: str
    unlocked_at: datetime | None
    unlocked_by: str | None
    unlock_reason: str | None


_COLUMNS = [year_lock.c[column.name] for column in fields(YearLock)]


@dataclass(frozen=True, slots=True)
class YearLocks:
    engine: Engine
    clock: Clock

    def held(self) -> dict[int, YearLock]:
        """The locks that hold now, by year."""
        query = select(*_COLUMNS).where(year_lock.c.unlocked_at.is_(None))
        with reading(self.engine) as connection:
            return {row.year: YearLock(*row) for row in connection.execute(query)}

    def history(self) -> list[YearLock]:
        with reading(self.engine) as connection:
            return [YearLock(*row) for row in connection.execute(select(*_COLUMNS).order_by(year_lock.c.id))]

    def lock(self, year: int, by: str, reason: str) -> YearLock:
        _said(reason)
        values = {"year": year, "locked_at": self.clock(), "locked_by": by, "reason": reason}
        try:
            with writing(self.engine) as connection:
                row = connection.execute(insert(year_lock).values(values).returning(*_COLUMNS)).one()
        except IntegrityError:
            raise InvalidInput(f"{year} is locked already", reason_code="already_locked") from None
        return YearLock(*row)

    def unlock(self, year: int, by: str, reason: str) -> None:
        _said(reason)
        change = (
            update(year_lock)
            .where(year_lock.c.year == year, year_lock.c.unlocked_at.is_(None))
            .values(unlocked_at=self.clock(), unlocked_by=by, unlock_reason=reason)
        )
        with writing(self.engine) as connection:
            changed = connection.execute(change).rowcount
        if not changed:
            raise InvalidInput(f"{year} is not locked", reason_code="not_locked")


def _said(reason: str) -> None:
    if not reason.strip():
        raise InvalidInput("a reason is needed", reason_code="no_reason", remedy="--reason TEXT")

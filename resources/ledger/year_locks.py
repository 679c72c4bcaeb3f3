"""Years that nobody may change, because their report was published: who locked them, and why.

A lock and the work of its year exclude each other: a year is locked only while none of its work is held, and
its work is held only while the year is open. Each is decided in the transaction that writes it, and those of
one year wait for each other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from sqlalchemy import Connection, Engine, insert, select, update
from sqlalchemy.exc import IntegrityError

from domain.shared.clock import Clock
from domain.shared.error import InvalidInput
from domain.shared.names import fault_of_text
from domain.shared.work import Kind
from resources.database.engine import reading, writing
from resources.database.statements import lock_name
from resources.ledger.model import Work
from resources.ledger.rows import as_work, select_work
from resources.ledger.schema import is_running, work, year_lock

LONGEST_REASON = 1_000
"""Characters."""


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
_HELD = select(*_COLUMNS).where(year_lock.c.unlocked_at.is_(None))


def locks_of(connection: Connection, kind: Kind, keys: Collection[str]) -> dict[str, YearLock]:
    """By key the lock that its year is under. Until the transaction ends, nobody locks any of these years.

    To be asked before any row is locked: whoever locks a year waits for no row.
    """
    if kind.year_of is None:
        return {}
    years = {key: kind.year_of(key) for key in keys}
    for year in sorted(set(years.values())):
        _alone(connection, year)
    held = {row.year: YearLock(*row) for row in connection.execute(_HELD)}
    return {key: held[year] for key, year in years.items() if year in held}


def _alone(connection: Connection, year: int) -> None:
    lock_name(connection, f"year {year}")


@dataclass(frozen=True, slots=True)
class YearLocks:
    engine: Engine
    clock: Clock
    kinds: Mapping[str, Kind]

    def held(self) -> dict[int, YearLock]:
        """The locks that hold now, by year."""
        with reading(self.engine) as connection:
            return {row.year: YearLock(*row) for row in connection.execute(_HELD)}

    def history(self) -> list[YearLock]:
        with reading(self.engine) as connection:
            return [YearLock(*row) for row in connection.execute(select(*_COLUMNS).order_by(year_lock.c.id))]

    def lock(self, year: int, by: str, reason: str) -> YearLock:
        """Refused while work of the year is held: what it commits would change a locked year."""
        _said(reason)
        values = {"year": year, "locked_at": self.clock(), "locked_by": by, "reason": reason}
        try:
            with writing(self.engine) as connection:
                _alone(connection, year)
                self._refuse_busy(connection, year)
                row = connection.execute(insert(year_lock).values(values).returning(*_COLUMNS)).one()
        except IntegrityError:
            raise InvalidInput(f"{year} is locked already", reason_code="already_locked") from None
        return YearLock(*row)

    def _refuse_busy(self, connection: Connection, year: int) -> None:
        of_years = {name: kind.year_of for name, kind in self.kinds.items() if kind.year_of is not None}
        running = select_work().where(work.c.kind.in_(of_years), is_running()).order_by(work.c.id)
        rows = map(as_work, connection.execute(running))
        if busy := [row for row in rows if of_years[row.kind](row.key) == year]:
            raise YearBusy(year, busy)

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


class YearBusy(InvalidInput):
    """Work of the year is being done."""

    reason_code = "year_busy"

    def __init__(self, year: int, rows: Sequence[Work]) -> None:
        first, more = rows[0], len(rows) - 1
        others = f" and {more} more" if more else ""
        super().__init__(
            f"{year} is being worked at: {first.key} (work {first.id}){others}",
            remedy=f"lock it when that is done; or call it off: `perennial work cancel {first.id}`",
        )


def _said(reason: str) -> None:
    """It is shown to everybody whom the lock stops, in terminals too."""
    if not reason.strip():
        raise InvalidInput("a reason is needed", reason_code="no_reason", remedy="--reason TEXT")
    if fault := fault_of_text(reason, LONGEST_REASON):
        raise InvalidInput(f"the reason is {fault}", reason_code="no_reason", remedy="--reason TEXT")

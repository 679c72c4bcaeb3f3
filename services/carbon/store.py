"""Carbon's own tables: year locks, and what feeds reported; uploads have a module of their own.

A year lock and work on that year exclude each other: a year is locked only while none of its work is
running, and its work is claimed only while the year is open. Each is decided in the transaction that writes
it, and transactions of one year wait for each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import datetime

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    String,
    Table,
    Text,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from domain.carbon.feeds import FeedChange
from domain.carbon.jobs import YEAR_KINDS, year_of_key
from domain.shared.clock import Clock
from domain.shared.error import InvalidInput
from domain.shared.names import fault_of_text
from domain.shared.work import Kind, Work
from resources.database.engine import reading, writing
from resources.database.schema import BigId, UtcDateTime, metadata, partial
from resources.database.statements import insert_into, lock_name
from resources.ledger.rows import as_work, select_work
from resources.ledger.schema import is_running, work
from services.carbon.upload_store import Uploads

year_lock = Table(
    "year_lock",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("year", Integer, nullable=False),
    Column("locked_at", UtcDateTime, nullable=False),
    Column("locked_by", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("unlocked_at", UtcDateTime),
    Column("unlocked_by", String),
    Column("unlock_reason", Text),
    sqlite_autoincrement=True,
)
Index("uq_year_lock_held", year_lock.c.year, unique=True, **partial("unlocked_at IS NULL"))

feed_content = Table(
    "feed_content",
    metadata,
    Column("source", String, primary_key=True),
    Column("institution", String, primary_key=True),
    Column("topic", String, primary_key=True),
    Column("year", Integer, primary_key=True),
    Column("kind", String, primary_key=True),
    Column("version", String, nullable=False),
    Column("reported_at", UtcDateTime, nullable=False),
)


LONGEST_REASON = 1_000
"""Characters."""


@dataclass(frozen=True, slots=True)
class YearLock:
    id: int
    year: int
    locked_at: datetime
    locked_by: str
    reason: str


_LOCK = [year_lock.c[column.name] for column in fields(YearLock)]
_HELD = select(*_LOCK).where(year_lock.c.unlocked_at.is_(None))


class YearLocked(InvalidInput):
    """The year's report was published; nothing may change it."""

    reason_code = "year_locked"

    def __init__(self, lock: YearLock) -> None:
        super().__init__(
            f"{lock.year} is locked by {lock.locked_by}: {lock.reason}",
            remedy=f"`perennial carbon unlock {lock.year} --reason …` if the report shall change after all",
        )


class YearBusy(InvalidInput):
    """Work of the year is running."""

    reason_code = "year_busy"

    def __init__(self, year: int, rows: Sequence[Work]) -> None:
        first, more = rows[0], len(rows) - 1
        others = f" and {more} more" if more else ""
        super().__init__(
            f"{year} is being worked at: {first.key} (work {first.id}){others}",
            remedy=f"lock it when that is done; or call it off: `perennial work cancel {first.id}`",
        )


def gated(kinds: Iterable[Kind]) -> tuple[Kind, ...]:
    """These kinds, with the gate of locked years where their work changes what a year holds."""
    return tuple(replace(kind, gate=locked_keys) if kind.name in YEAR_KINDS else kind for kind in kinds)


def locked_keys(connection: Connection, keys: Collection[str]) -> dict[str, YearLocked]:
    """The claim gate: keys of locked years. Until the transaction ends, nobody locks another of them."""
    years = {key: year_of_key(key) for key in keys}
    for year in sorted(set(years.values())):
        _lock_name(connection, year)
    held = {row.year: YearLock(*row) for row in connection.execute(_HELD)}
    return {key: YearLocked(held[year]) for key, year in years.items() if year in held}


def _lock_name(connection: Connection, year: int) -> None:
    lock_name(connection, f"year {year}")


@dataclass(frozen=True, slots=True)
class YearLocks:
    engine: Engine
    clock: Clock

    def held(self) -> dict[int, YearLock]:
        """The locks that hold now, by year."""
        with reading(self.engine) as connection:
            return {row.year: YearLock(*row) for row in connection.execute(_HELD)}

    def lock(self, year: int, by: str, reason: str) -> YearLock:
        """Refused while work of the year is running: what it commits would change a locked year."""
        _check_reason(reason)
        values = {"year": year, "locked_at": self.clock(), "locked_by": by, "reason": reason}
        try:
            with writing(self.engine) as connection:
                _lock_name(connection, year)
                _refuse_busy(connection, year)
                row = connection.execute(insert(year_lock).values(values).returning(*_LOCK)).one()
        except IntegrityError:
            raise InvalidInput(f"{year} is locked already", reason_code="already_locked") from None
        return YearLock(*row)

    def unlock(self, year: int, by: str, reason: str) -> None:
        _check_reason(reason)
        change = (
            update(year_lock)
            .where(year_lock.c.year == year, year_lock.c.unlocked_at.is_(None))
            .values(unlocked_at=self.clock(), unlocked_by=by, unlock_reason=reason)
        )
        with writing(self.engine) as connection:
            changed = connection.execute(change).rowcount
        if not changed:
            raise InvalidInput(f"{year} is not locked", reason_code="not_locked")


def _refuse_busy(connection: Connection, year: int) -> None:
    running = select_work().where(work.c.kind.in_(YEAR_KINDS), is_running()).order_by(work.c.id)
    rows = map(as_work, connection.execute(running))
    if busy := [row for row in rows if year_of_key(row.key) == year]:
        raise YearBusy(year, busy)


def _check_reason(reason: str) -> None:
    """It is shown to everybody whom the lock stops, in terminals too."""
    if not reason.strip():
        raise InvalidInput("a reason is needed", reason_code="no_reason", remedy="--reason TEXT")
    if fault := fault_of_text(reason, LONGEST_REASON):
        raise InvalidInput(f"the reason is {fault}", reason_code="no_reason", remedy="--reason TEXT")


_FEED = [feed_content.c[name] for name in ("source", "institution", "topic", "year", "version", "kind")]
"""In the order of the fields of a change."""
_FEED_KEY = [column for column in _FEED if column.primary_key]


@dataclass(frozen=True, slots=True)
class FeedContents:
    engine: Engine

    def report(self, contents: Iterable[FeedChange], asked_at: datetime) -> None:
        """Keep what a feed reported to a poll of `asked_at`; of several reports of one scope the last counts.

        The answer to an earlier poll than one that is kept may be older, and changes nothing.
        """
        newest = {replace(one, version=""): one for one in contents}
        if not newest:
            return
        # Always in one order: rows locked in different orders would deadlock.
        names = [column.name for column in _FEED]
        rows = [
            dict(zip(names, astuple(newest[key]), strict=True)) | {"reported_at": asked_at}
            for key in sorted(newest)
        ]
        statement = insert_into(feed_content, self.engine)
        new = statement.excluded
        upsert = statement.on_conflict_do_update(
            index_elements=_FEED_KEY,
            set_={"version": new.version, "reported_at": new.reported_at},
            where=feed_content.c.reported_at <= new.reported_at,
        )
        with writing(self.engine) as connection:
            connection.execute(upsert, rows)

    def delete_gone(self, source: str, asked_at: datetime) -> None:
        """Delete what the answer to a poll of `asked_at`, once it is kept, did not list."""
        gone = (feed_content.c.source == source, feed_content.c.reported_at < asked_at)
        with writing(self.engine) as connection:
            connection.execute(delete(feed_content).where(*gone))

    def mark_read(self, reported: FeedChange, version: str) -> None:
        """The scope was read, and is this version by now; a version reported meanwhile stays to be read."""
        same = [column == value for column, value in zip(_FEED, astuple(reported), strict=True)]
        with writing(self.engine) as connection:
            connection.execute(update(feed_content).where(*same).values(version=version))

    def all(self) -> list[FeedChange]:
        with reading(self.engine) as connection:
            return [FeedChange(*row) for row in connection.execute(select(*_FEED).order_by(*_FEED_KEY))]


@dataclass(frozen=True, slots=True)
class CarbonStore:
    """What carbon keeps in the ledger's database, beside its work."""

    engine: Engine
    clock: Clock

    @property
    def uploads(self) -> Uploads:
        return Uploads(self.engine, self.clock)

    @property
    def feed_contents(self) -> FeedContents:
        return FeedContents(self.engine)

    @property
    def year_locks(self) -> YearLocks:
        return YearLocks(self.engine, self.clock)

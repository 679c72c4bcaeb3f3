"""Reading the ledger, for people, sensors and status pages; and forgetting what is old."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, Engine, and_, delete, func, not_, or_, select

from resources.database.engine import reading, writing
from resources.database.statements import chunks
from resources.ledger.model import Event, Work
from resources.ledger.rows import as_work, select_work
from resources.ledger.schema import ACTIVE, CANCELLED, FAILED, is_running, work, work_event
from resources.ledger.standing import BY_A_PERSON, stands

PURGE_BATCH = 5_000
"""Rows one transaction deletes, so that retention never holds up a heartbeat."""
LAST_ID = 2**63 - 1
"""A larger number is no id to a database, but an error."""


def get(connection: Connection, work_id: int) -> Work | None:
    if not 0 < work_id <= LAST_ID:
        return None
    row = connection.execute(select_work().where(work.c.id == work_id)).one_or_none()
    return None if row is None else as_work(row)


def find(
    engine: Engine,
    *,
    kind: str | None,
    key_prefix: str | None,
    status: str | Collection[str] | None,
    limit: int | None,
) -> list[Work]:
    query = select_work().order_by(work.c.id.desc())
    if kind is not None:
        query = query.where(work.c.kind == kind)
    if key_prefix:
        query = query.where(work.c.key.startswith(key_prefix, autoescape=True))
    if status is not None:
        wanted = {status} if isinstance(status, str) else set(status)
        query = query.where(work.c.status.in_(sorted(wanted)))
        if wanted <= set(ACTIVE):
            query = query.where(work.c.finished_at.is_(None))  # the words of an index that stays small
    if limit is not None:
        query = query.limit(limit)
    with reading(engine) as connection:
        return [as_work(row) for row in connection.execute(query)]


def running(engine: Engine) -> list[Work]:
    with reading(engine) as connection:
        rows = connection.execute(select_work().where(is_running()).order_by(work.c.id))
        return [as_work(row) for row in rows]


def sent(engine: Engine, dispatch_id: str) -> list[Work]:
    with reading(engine) as connection:
        query = select_work().where(work.c.dispatch_id == dispatch_id).order_by(work.c.id)
        return [as_work(row) for row in connection.execute(query)]


def asked_for(engine: Engine, ids: Collection[int]) -> frozenset[int]:
    """Of these rows those that a person asked for. Their history tells; a row itself says why it waits."""
    found: set[int] = set()
    with reading(engine) as connection:
        for chunk in chunks(sorted(ids)):
            query = select(work_event.c.work_id).where(
                work_event.c.work_id.in_(chunk), work_event.c.reason_code.in_(BY_A_PERSON)
            )
            found |= set(connection.execute(query).scalars())
    return frozenset(found)


def events(engine: Engine, work_id: int) -> list[Event]:
    query = select(work_event).where(work_event.c.work_id == work_id).order_by(work_event.c.id)
    with reading(engine) as connection:
        return [Event(*row) for row in connection.execute(query)]


def counts(engine: Engine) -> dict[str, dict[str, int]]:
    """How many rows of each kind have each status."""
    query = select(work.c.kind, work.c.status, func.count()).group_by(work.c.kind, work.c.status)
    table: dict[str, dict[str, int]] = {}
    with reading(engine) as connection:
        for kind, status, number in connection.execute(query):
            table.setdefault(kind, {})[status] = number
    return table


def purge(engine: Engine, older_than: datetime) -> int:
    """Delete rows that finished before `older_than`, with their events.

    What still forbids something is kept: a failure or a cancellation that stands, so that the same wish
    stays refused; an event that was done once for all.
    """
    forbids = or_(work.c.status.in_([FAILED, CANCELLED]), work.c.once)
    batch = (
        select(work.c.id)
        .where(work.c.finished_at < older_than, not_(and_(forbids, stands())))
        .order_by(work.c.id)
        .limit(PURGE_BATCH)
        .with_for_update(skip_locked=True)
    )
    gone = 0
    while True:
        with writing(engine) as connection:
            ids = connection.execute(batch).scalars().all()
            connection.execute(delete(work).where(work.c.id.in_(ids)))
        gone += len(ids)
        if len(ids) < PURGE_BATCH:
            return gone

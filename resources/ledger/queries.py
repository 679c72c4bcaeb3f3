"""Reading the ledger, for people, sensors and status pages; and deleting what is old."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, delete, func, not_, or_, select

from resources.database.engine import reading, writing
from resources.database.statements import rows_in
from resources.ledger.context import LedgerContext
from resources.ledger.history import counts
from resources.ledger.model import BY_A_PERSON, Backlog, Event, Work
from resources.ledger.rows import as_work, is_id, select_work
from resources.ledger.schema import (
    ACTIVE,
    CANCELLED,
    FAILED,
    is_running,
    is_running_now,
    is_waiting,
    work,
    work_event,
)

PURGE_BATCH = 5_000
"""Rows one transaction deletes, so that retention never holds up a heartbeat."""


class Queries(LedgerContext):
    def get(self, work_id: int) -> Work | None:
        if not is_id(work_id):
            return None
        with reading(self.engine) as connection:
            row = connection.execute(select_work().where(work.c.id == work_id)).one_or_none()
        return None if row is None else as_work(row)

    def find(
        self,
        kind: str | None = None,
        key_prefix: str | None = None,
        status: str | Collection[str] | None = None,
        limit: int | None = 100,
    ) -> list[Work]:
        """Rows, newest first."""
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
        with reading(self.engine) as connection:
            return [as_work(row) for row in connection.execute(query)]

    def running(self) -> list[Work]:
        with reading(self.engine) as connection:
            rows = connection.execute(select_work().where(is_running()).order_by(work.c.id))
            return [as_work(row) for row in rows]

    def current(self, kinds: Collection[str]) -> list[Work]:
        """What counts of these kinds now: refusals (failed, cancelled), then all that is unfinished, each
        oldest first."""
        unfinished = work.c.status.in_(ACTIVE)
        refusal = and_(work.c.status.in_([FAILED, CANCELLED]), counts())
        query = (
            select_work()
            .where(work.c.kind.in_(list(kinds)), or_(unfinished, refusal))
            .order_by(case((unfinished, 1), else_=0), work.c.id)
        )
        with reading(self.engine) as connection:
            return [as_work(row) for row in connection.execute(query)]

    def backlog(self, kind: str) -> dict[str, Backlog]:
        """The unfinished work of a kind, by tenant, read from the partial indexes alone."""
        due = func.sum(case((work.c.not_before <= self.clock(), 1), else_=0))
        waiting = _by_tenant(kind, is_waiting(), func.count(), due, func.min(work.c.created_at))
        running = _by_tenant(kind, is_running_now(), func.count())
        with reading(self.engine) as connection:
            found = {row[0]: row for row in connection.execute(waiting)}
            active = {row[0]: row[1] for row in connection.execute(running)}
        return {
            tenant: _backlog(found.get(tenant), active.get(tenant, 0))
            for tenant in sorted(found.keys() | active.keys())
        }

    def requested_by_person(self, ids: Collection[int]) -> frozenset[int]:
        """Those of these rows that a person requested. Their history tells; a row says why it waits now."""
        query = select(work_event.c.work_id).where(work_event.c.reason_code.in_(BY_A_PERSON))
        with reading(self.engine) as connection:
            return frozenset(row[0] for row in rows_in(connection, query, work_event.c.work_id, ids))

    def events(self, work_id: int) -> list[Event]:
        query = select(work_event).where(work_event.c.work_id == work_id).order_by(work_event.c.id)
        with reading(self.engine) as connection:
            return [Event(*row) for row in connection.execute(query)]

    def counts(self) -> dict[str, dict[str, int]]:
        """How many rows of each kind have each status."""
        query = select(work.c.kind, work.c.status, func.count()).group_by(work.c.kind, work.c.status)
        table: dict[str, dict[str, int]] = {}
        with reading(self.engine) as connection:
            for kind, status, number in connection.execute(query):
                table.setdefault(kind, {})[status] = number
        return table

    def purge(self, older_than: datetime) -> int:
        """Delete rows that finished before `older_than`, with their events; returns how many.

        A failure or a cancellation that counts is kept: the same request stays refused.
        """
        refusal = and_(work.c.status.in_([FAILED, CANCELLED]), counts())
        batch = (
            select(work.c.id)
            .where(work.c.finished_at < older_than, not_(refusal))
            .order_by(work.c.id)
            .limit(PURGE_BATCH)
            .with_for_update(skip_locked=True)
        )
        deleted = 0
        while True:
            with writing(self.engine) as connection:
                ids = connection.execute(batch).scalars().all()
                connection.execute(delete(work).where(work.c.id.in_(ids)))
            deleted += len(ids)
            if len(ids) < PURGE_BATCH:
                return deleted


def _by_tenant(kind: str, condition: ColumnElement[bool], *columns: ColumnElement[Any]) -> Select[Any]:
    return select(work.c.tenant, *columns).where(work.c.kind == kind, condition).group_by(work.c.tenant)


def _backlog(waiting: Any | None, running: int) -> Backlog:
    if waiting is None:
        return Backlog(0, 0, running, None)
    return Backlog(int(waiting[2]), waiting[1], running, waiting[3])

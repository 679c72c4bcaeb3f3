"""Reading the ledger, for people, sensors and status pages; and deleting what is old."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, delete, func, not_, or_, select

from domain.shared.work import ACTIVE, CANCELLED, COMPLETED, FAILED, Refusals, Work, split_key
from resources.database.engine import reading, writing
from resources.database.schema import UtcDateTime
from resources.database.statements import rows_in
from resources.ledger.context import LedgerContext
from resources.ledger.history import counts
from resources.ledger.model import BY_A_PERSON, Backlog, Event
from resources.ledger.rows import as_work, is_id, select_work
from resources.ledger.schema import is_refused, is_running, is_running_now, is_waiting, work, work_event

PURGE_BATCH = 5_000
"""Rows one transaction deletes, so that retention never holds up a heartbeat."""


class Queries(LedgerContext):
    def get(self, work_id: int) -> Work | None:
        found = self._rows(select_work().where(work.c.id == work_id)) if is_id(work_id) else []
        return found[0] if found else None

    def get_all(self, work_ids: Collection[int]) -> dict[int, Work]:
        """By id, the rows that there are."""
        query, wanted = select_work(), filter(is_id, work_ids)
        with reading(self.engine) as connection:
            return {row.id: as_work(row) for row in rows_in(connection, query, work.c.id, wanted)}

    def find(
        self,
        kind: str | None = None,
        key_prefix: str | None = None,
        status: str | Collection[str] | None = None,
        limit: int | None = 100,
        *,
        reason_code: str | None = None,
        since: datetime | None = None,
        before: int | None = None,
    ) -> list[Work]:
        """Rows, newest first. `since`: those that changed then or later; `before`: older than this row."""
        query = select_work()
        place: ColumnElement[int] = work.c.id
        if kind is not None:
            query = query.where(work.c.kind == kind)
        if key_prefix:
            query = query.where(work.c.key.startswith(key_prefix, autoescape=True))
        if status is not None:
            wanted = {status} if isinstance(status, str) else set(status)
            query = query.where(work.c.status.in_(sorted(wanted)))
            # The condition of an index that stays small. SQLite would rather read all rows by their ids.
            if wanted <= set(ACTIVE):
                query, place = query.where(work.c.finished_at.is_(None)), work.c.id + 0
            elif wanted <= {FAILED, CANCELLED}:
                query, place = query.where(is_refused()), work.c.id + 0
        if reason_code is not None:
            query = query.where(work.c.reason_code == reason_code)
        if since is not None:
            query = query.where(work.c.updated_at >= since)
        if before is not None:
            query = query.where(place < before)
        if limit is not None:
            query = query.limit(limit)
        return self._rows(query.order_by(place.desc()))

    def of_keys(self, kind: str, keys: Collection[str]) -> list[Work]:
        """Every generation of these keys that is kept, oldest first."""
        query = select_work().where(work.c.kind == kind)
        with reading(self.engine) as connection:
            found = list(map(as_work, rows_in(connection, query, work.c.key, keys)))
        return sorted(found, key=lambda row: row.id)

    def running(self) -> list[Work]:
        return self._rows(select_work().where(is_running()).order_by(work.c.id))

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
        return self._rows(query)

    def _rows(self, query: Select[Any]) -> list[Work]:
        with reading(self.engine) as connection:
            return list(map(as_work, connection.execute(query)))

    def backlog(self, kind: str) -> dict[str, Backlog]:
        """The unfinished work of a kind, by tenant, read from the partial indexes alone."""
        due = func.sum(case((work.c.not_before <= self.clock(), 1), else_=0))
        of_kind = select(work.c.tenant, func.count()).where(work.c.kind == kind).group_by(work.c.tenant)
        waiting = of_kind.where(is_waiting()).add_columns(due, func.min(work.c.created_at))
        with reading(self.engine) as connection:
            found = {
                tenant: Backlog(int(due_now), number, oldest=oldest)
                for tenant, number, due_now, oldest in connection.execute(waiting)
            }
            for tenant, number in connection.execute(of_kind.where(is_running_now())):
                found[tenant] = replace(found.get(tenant, Backlog()), running=number)
        return dict(sorted(found.items()))

    def not_due(self, kind: str) -> list[Work]:
        """The waiting rows of a kind whose moment has not come."""
        later = and_(work.c.kind == kind, is_waiting(), work.c.not_before > self.clock())
        return self._rows(select_work().where(later).order_by(work.c.id))

    def refusals(self, kind: str) -> list[Refusals]:
        """What of a kind failed or was cancelled, and counts: one for each tenant and reason, those with the
        newest work first."""
        ended = func.min(func.coalesce(work.c.finished_at, work.c.updated_at), type_=UtcDateTime)
        newest = func.max(work.c.id)
        query = (
            select(newest, func.count(), ended)
            .where(work.c.kind == kind, is_refused(), counts())
            .group_by(work.c.tenant, work.c.status, work.c.reason_code)
            .order_by(newest.desc())
        )
        with reading(self.engine) as connection:
            found = [tuple(row) for row in connection.execute(query)]
        rows = self.get_all([number for number, _, _ in found])
        return [Refusals(rows[n], number, since) for n, number, since in found if n in rows]

    def requested_by_person(self, ids: Collection[int]) -> frozenset[int]:
        """Those of these rows that a person requested, by their history: a row has only its newest reason."""
        query = select(work_event.c.work_id).where(work_event.c.reason_code.in_(BY_A_PERSON))
        with reading(self.engine) as connection:
            return frozenset(row[0] for row in rows_in(connection, query, work_event.c.work_id, ids))

    def events(self, work_id: int) -> list[Event]:
        query = select(work_event).where(work_event.c.work_id == work_id).order_by(work_event.c.id)
        with reading(self.engine) as connection:
            return [Event(*row) for row in connection.execute(query)]

    def completed_by(self, run_ids: Collection[str]) -> dict[str, int]:
        """By table, how many keys these runs completed."""
        query = select(work.c.key).where(work.c.status == COMPLETED)
        with reading(self.engine) as connection:
            keys = [row[0] for row in rows_in(connection, query, work.c.run_id, run_ids)]
        return dict(sorted(Counter(split_key(key)[0] for key in keys).items()))

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

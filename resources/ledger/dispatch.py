"""Dispatching: which due rows go next, and how they are handed to runs."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, and_, case, func, or_, select

from resources.database.engine import reading, writing
from resources.ledger.claim_due import is_due
from resources.ledger.context import LedgerContext
from resources.ledger.model import Dispatch, Work
from resources.ledger.rows import Change, as_work, lock_ids, select_work, write
from resources.ledger.schema import RUNNING, WAITING, work
from resources.ledger.transitions import dispatched, unclaimed

Order = Literal["oldest", "newest"]

CANDIDATES = 20_000
"""Due rows one pass considers; the tenants share them evenly."""


def _alone(row: Work) -> str:
    return str(row.id)


def _any(_: Work) -> bool:
    return True


class DispatchOperations(LedgerContext):
    def dispatch(
        self,
        kind: str,
        *,
        limit: int,
        group: Callable[[Work], str] = _alone,
        order: Order = "oldest",
        busy: Collection[str] = (),
        only: Callable[[Work], bool] = _any,
    ) -> list[Dispatch]:
        """The due rows to start runs for, at most `limit` groups; rows of one group travel together.

        Tenants take turns; then priority; then age, or with `order="newest"` the group's name, descending.
        `busy` names the dispatches whose run is queued or running: their rows are left out, as are those
        that `only` refuses. A row whose run ended without claiming it waits first, counted from now.
        """
        if self.kind_named(kind).pulled:
            raise ValueError(f"{kind} is pulled: start a run when its backlog shows due work")
        now, busy = self.clock(), frozenset(busy)
        with reading(self.engine) as connection:
            due = [row for row in _due_rows(connection, kind, order, now) if _is_free(row, busy)]
            candidates = [row for row in due if not _is_unclaimed(row) and only(row)]
            load = _load_by_tenant(connection, kind, now) if candidates else {}
        groups = _fair_groups(candidates, group, order, load)[: max(limit, 0)]
        unclaimed_ids = {row.id for row in due if _is_unclaimed(row)}
        wanted = {row.id for _, rows in groups for row in rows}
        if not wanted and not unclaimed_ids:
            return []
        with writing(self.engine) as connection:
            # Read again under the lock: another pass may have dispatched them meanwhile.
            ours = {
                row.id: row
                for row in lock_ids(connection, wanted | unclaimed_ids, skip_locked=True)
                if row.status in WAITING and row.not_before <= now and _is_free(row, busy)
            }
            late = [row for row in ours.values() if _is_unclaimed(row)]
            dispatches = _dispatches(groups, {n: row for n, row in ours.items() if row not in late}, now)
            sent = [
                Change(ours[row.id], row, "dispatched") for dispatch in dispatches for row in dispatch.rows
            ]
            write(connection, [*sent, *(Change(row, unclaimed(row, now), "unclaimed") for row in late)], now)
        return dispatches

    def sent(self, dispatch_id: str) -> list[Work]:
        """The rows that were dispatched under this id and not again since."""
        with reading(self.engine) as connection:
            query = select_work().where(work.c.dispatch_id == dispatch_id).order_by(work.c.id)
            return [as_work(row) for row in connection.execute(query)]


def _is_free(row: Work, busy: Collection[str]) -> bool:
    """Whether no live run was started for the row."""
    return row.dispatch_id is None or row.dispatch_id not in busy


def _is_unclaimed(row: Work) -> bool:
    return row.dispatch_id is not None and row.dispatches > 0


def _dispatches(
    groups: Sequence[tuple[str, Sequence[Work]]], ours: dict[int, Work], now: datetime
) -> list[Dispatch]:
    dispatches = []
    for name, rows in groups:
        dispatch_id = secrets.token_hex(8)
        batch = [ours[number] for number in sorted(row.id for row in rows) if number in ours]
        if batch:
            sent = tuple(dispatched(row, dispatch_id, now) for row in batch)
            dispatches.append(Dispatch(dispatch_id, name, sent))
    return dispatches


def _due_rows(connection: Connection, kind: str, order: Order, now: datetime) -> list[Work]:
    age = work.c.id.desc() if order == "newest" else work.c.id
    turn = func.row_number().over(partition_by=work.c.tenant, order_by=[work.c.priority.desc(), age])
    query = (
        select_work().where(is_due(kind, now)).order_by(turn, work.c.priority.desc(), age).limit(CANDIDATES)
    )
    return [as_work(row) for row in connection.execute(query)]


def _load_by_tenant(connection: Connection, kind: str, now: datetime) -> dict[str, int]:
    """Tenants with waiting rows and how much each has under way, the least busy first."""
    under_way = or_(work.c.status == RUNNING, and_(work.c.dispatch_id.is_not(None), work.c.not_before > now))
    query = (
        select(work.c.tenant, func.sum(case((under_way, 1), else_=0)))
        .where(work.c.kind == kind, work.c.status.in_((*WAITING, RUNNING)))
        .group_by(work.c.tenant)
    )
    load = {tenant: int(number) for tenant, number in connection.execute(query)}
    return dict(sorted(load.items(), key=lambda pair: (pair[1], pair[0])))


def _fair_groups(
    rows: Sequence[Work], group: Callable[[Work], str], order: Order, load: dict[str, int]
) -> list[tuple[str, list[Work]]]:
    """Groups in the order of their turns: tenants take turns, each with its most urgent group first."""
    members: dict[str, list[Work]] = defaultdict(list)
    for row in rows:
        members[group(row)].append(row)
    by_tenant: dict[str, list[str]] = defaultdict(list)
    for name in sorted(members, reverse=order == "newest"):
        by_tenant[members[name][0].tenant].append(name)
    for names in by_tenant.values():
        names.sort(key=lambda name: _urgency(members[name], order))
    turns = [
        (turn + load.get(tenant, 0), tenant, name)
        for tenant, names in by_tenant.items()
        for turn, name in enumerate(names)
    ]
    return [(name, members[name]) for _, _, name in sorted(turns, key=lambda t: t[:2])]


def _urgency(rows: Sequence[Work], order: Order) -> tuple[Any, ...]:
    """Sorts ascending; for "newest" equal priorities keep the descending order of their names."""
    priority = max(row.priority for row in rows)
    return (-priority,) if order == "newest" else (-priority, min(row.id for row in rows))

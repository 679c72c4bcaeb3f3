"""Which due rows go next, and how they are handed out: to runs (`dispatch`) or to workers (`claim`)."""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Engine, and_, case, func, not_, or_, select

from domain.shared.work import Kind
from resources.database.engine import reading, writing
from resources.ledger.claims import Claimant, lock_gate, refusals, skipped_as_refused
from resources.ledger.model import Dispatch, Work
from resources.ledger.rows import Change, as_work, lock_ids, select_work, write
from resources.ledger.schema import RUNNING, WAITING, is_running, is_waiting, work
from resources.ledger.transitions import claimed, dispatched

Order = Literal["oldest", "newest"]

CANDIDATES = 20_000
"""Due rows one look considers; the tenants share them evenly."""


def dispatch(
    engine: Engine,
    kind: str,
    *,
    limit: int,
    group: Callable[[Work], str],
    order: Order,
    busy: Collection[str],
    now: datetime,
    only: Callable[[Work], bool],
) -> list[Dispatch]:
    busy = frozenset(busy)
    with reading(engine) as connection:
        due = _due_rows(connection, kind, order, now)
        candidates = [row for row in due if row.dispatch_id not in busy and only(row)]
        load = _load_by_tenant(connection, kind, now) if candidates else {}
    groups = _fair_groups(candidates, group, order, load)[:limit]
    wanted = {row.id for _, rows in groups for row in rows}
    if not wanted:
        return []
    with writing(engine) as connection:
        # Looked at again under the lock: another look may have sent them meanwhile.
        ours = {
            row.id: row
            for row in lock_ids(connection, wanted, skip_locked=True)
            if _still_due(row, busy, now)
        }
        changes: list[Change] = []
        dispatches: list[Dispatch] = []
        for name, rows in groups:
            dispatch_id = secrets.token_hex(8)
            batch = [ours[number] for number in sorted(row.id for row in rows) if number in ours]
            sent = [Change(row, dispatched(row, dispatch_id, now), "dispatched") for row in batch]
            changes += sent
            if sent:
                dispatches.append(Dispatch(dispatch_id, name, tuple(change.after for change in sent)))
        write(connection, changes, now)
    return dispatches


def claim(engine: Engine, kind: Kind, claimant: Claimant, limit: int) -> list[Work]:
    """Claim due rows for a worker process, each row for exactly one of all that claim.

    Rows that the kind's gate refuses end as skipped, and count against the limit.
    """
    now = claimant.now
    with writing(engine) as connection:
        lock_gate(connection, kind)
        rows = _next_due(connection, kind.name, limit, now)
        refused = refusals(connection, kind, [row.key for row in rows]) if rows else {}
        changes = [
            Change(row, claimed(row, claimant.run_id, now=now, lease_until=claimant.lease_until), "claimed")
            if row.key not in refused
            else Change(row, skipped_as_refused(row, kind, refused[row.key], claimant), "skipped")
            for row in rows
        ]
        write(connection, changes, now)
    return [change.after for change in changes if change.after.status == RUNNING]


def _next_due(connection: Connection, kind: str, limit: int, now: datetime) -> list[Work]:
    """Due rows, locked; the tenants share alike."""
    rows: list[Work] = []
    tenants = _waiting_tenants(connection, kind)
    # What some tenants have not enough rows for is shared by those that gave all they were asked for.
    while tenants and len(rows) < limit:
        least, more = divmod(limit - len(rows), len(tenants))
        shares = [least + (turn < more) for turn in range(len(tenants))]
        given = [
            _take(connection, kind, tenant, share, now, rows) if share else []
            for tenant, share in zip(tenants, shares, strict=True)
        ]
        tenants = [t for t, share, got in zip(tenants, shares, given, strict=True) if len(got) == share]
        rows += chain.from_iterable(given)
        so_far = Counter(row.tenant for row in rows)
        tenants.sort(key=so_far.__getitem__)
    return rows


def _take(
    connection: Connection, kind: str, tenant: str, share: int, now: datetime, taken: Sequence[Work]
) -> list[Work]:
    """The tenant's next due rows, locked. Our own locks do not keep us from what is taken already."""
    query = (
        select_work()
        .where(_due(kind, now), work.c.tenant == tenant)
        .order_by(work.c.priority.desc(), work.c.id)
        .limit(share)
        .with_for_update(skip_locked=True)
    )
    if already := [row.id for row in taken if row.tenant == tenant]:
        query = query.where(work.c.id.not_in(already))
    return list(map(as_work, connection.execute(query)))


def _due(kind: str, now: datetime) -> ColumnElement[bool]:
    other = work.alias("other")
    blocked = (
        select(other.c.id)
        .where(other.c.kind == work.c.kind, other.c.key == work.c.key, is_running(other))
        .exists()
    )
    return and_(work.c.kind == kind, is_waiting(), work.c.not_before <= now, not_(blocked))


def _still_due(row: Work, busy: frozenset[str], now: datetime) -> bool:
    return row.status in WAITING and row.not_before <= now and row.dispatch_id not in busy


def _due_rows(connection: Connection, kind: str, order: Order, now: datetime) -> list[Work]:
    age = work.c.id.desc() if order == "newest" else work.c.id
    turn = func.row_number().over(partition_by=work.c.tenant, order_by=[work.c.priority.desc(), age])
    query = select_work().where(_due(kind, now)).order_by(turn, work.c.priority.desc(), age).limit(CANDIDATES)
    return [as_work(row) for row in connection.execute(query)]


def _waiting_tenants(connection: Connection, kind: str) -> list[str]:
    """Tenants with waiting rows, the one with the fewest running rows first; found tenant by tenant."""
    waiting = and_(work.c.kind == kind, is_waiting())
    found = select(func.min(work.c.tenant).label("tenant")).where(waiting).cte("found", recursive=True)
    following = select(func.min(work.c.tenant)).where(waiting, work.c.tenant > found.c.tenant)
    found = found.union_all(
        select(following.correlate(found).scalar_subquery()).where(found.c.tenant.is_not(None))
    )
    names = connection.execute(select(found.c.tenant).where(found.c.tenant.is_not(None))).scalars().all()
    running: dict[str, int] = {}
    if len(names) > 1:
        query = (
            select(work.c.tenant, func.count())
            .where(work.c.kind == kind, is_running())
            .group_by(work.c.tenant)
        )
        running = {row[0]: row[1] for row in connection.execute(query)}
    return sorted(names, key=lambda name: (running.get(name, 0), name))


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

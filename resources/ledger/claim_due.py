"""Claiming whatever is due: which rows go next, shared alike by their tenants."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, func, not_, select

from domain.shared.work import RUNNING, Kind, Work
from resources.database.engine import writing
from resources.ledger.claims import Claimant, lock_gate, refusals, skip_refused
from resources.ledger.context import LedgerContext
from resources.ledger.rows import as_work, renew, select_work, write
from resources.ledger.schema import is_running, is_running_now, is_waiting, work
from resources.ledger.transitions import LEASE


class ClaimOperations(LedgerContext):
    """For workers that are no Dagster run: only their lease shows that they live."""

    def claim(
        self,
        kind: str,
        *,
        holder: str,
        limit: int,
        tenant: str | None = None,
        keys: Collection[str] | None = None,
        attempt: bool = True,
    ) -> list[Work]:
        """Claim due rows; the worker answers by id and fence. Tenants share alike.

        `attempt` False is for polling: nothing is counted, and no event is written unless the poll ends
        with another status than the one before.
        """
        claimant = Claimant(holder, self.clock(), self.machine_clock() + LEASE, attempt)
        tenants = None if tenant is None else [tenant]
        return claim_due(self, self.kind_named(kind), claimant, limit, tenants=tenants, keys=keys)

    def renew(self, work: Work) -> bool:
        """Prolong a worker's lease; whether the row is still leased under its fence."""
        with writing(self.engine) as connection:
            return bool(renew(connection, {work.id: work.fence}, self.machine_clock() + LEASE))


def claim_due(
    ledger: LedgerContext,
    kind: Kind,
    claimant: Claimant,
    limit: int,
    *,
    tenants: Collection[str] | None = None,
    keys: Collection[str] | None = None,
) -> list[Work]:
    """Claim due rows, each for exactly one of all that claim.

    Rows that the kind's gate refuses end as skipped, and count against the limit.
    """
    now = claimant.now
    with writing(ledger.engine) as connection:
        lock_gate(connection, kind)
        due = is_due(kind.name, now)
        if keys is not None:
            due = and_(due, work.c.key.in_(list(keys)))
        found = _waiting_tenants(connection, kind.name) if tenants is None else list(tenants)
        rows = _next_due(connection, due, found, limit)
        refused = refusals(connection, kind, [row.key for row in rows]) if rows else {}
        changes = [
            skip_refused(row, kind, refused[row.key], claimant)
            if row.key in refused
            else claimant.claims(row, "claimed" if claimant.attempt else "", attempt=claimant.attempt)
            for row in rows
        ]
        write(connection, changes, now)
    return [change.after for change in changes if change.after.status == RUNNING]


def is_due(kind: str, now: datetime) -> ColumnElement[bool]:
    other = work.alias("other")
    blocked = (
        select(other.c.id)
        .where(other.c.kind == work.c.kind, other.c.key == work.c.key, is_running(other))
        .exists()
    )
    return and_(work.c.kind == kind, is_waiting(), work.c.not_before <= now, not_(blocked))


def _next_due(connection: Connection, due: ColumnElement[bool], tenants: list[str], limit: int) -> list[Work]:
    """Due rows, locked, in rounds: what some tenants have not enough rows for, the others share alike."""
    rows: list[Work] = []
    while tenants and len(rows) < limit:
        share = max((limit - len(rows)) // len(tenants), 1)
        for tenant in tuple(tenants):
            room = min(share, limit - len(rows))
            given = _lock_next(connection, due, tenant, room, rows) if room else []
            rows += given
            if len(given) < room:
                tenants.remove(tenant)
    return rows


def _lock_next(
    connection: Connection, due: ColumnElement[bool], tenant: str, share: int, taken: Sequence[Work]
) -> list[Work]:
    """The tenant's next due rows. Our own locks do not keep us from what is taken already."""
    query = (
        select_work()
        .where(due, work.c.tenant == tenant)
        .order_by(work.c.priority.desc(), work.c.id)
        .limit(share)
        .with_for_update(skip_locked=True)
    )
    if already := [row.id for row in taken if row.tenant == tenant]:
        query = query.where(work.c.id.not_in(already))
    return list(map(as_work, connection.execute(query)))


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
            .where(work.c.kind == kind, is_running_now())
            .group_by(work.c.tenant)
        )
        running = {row[0]: row[1] for row in connection.execute(query)}
    return sorted(names, key=lambda name: (running.get(name, 0), name))

"""Dispatching: which due rows go next, and how they are handed to runs."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection

from domain.shared.work import WAITING, Work
from resources.database.engine import reading, writing
from resources.ledger.claim_due import is_due
from resources.ledger.model import Dispatch
from resources.ledger.queries import Queries
from resources.ledger.rows import Change, as_work, lock_ids, select_work, write
from resources.ledger.schema import work
from resources.ledger.transitions import dispatched, unclaimed

Order = Literal["oldest", "newest"]

CANDIDATES = 20_000
"""Due rows one pass considers."""


class DispatchOperations(Queries):
    def dispatch(
        self,
        kind: str,
        *,
        limit: int,
        group: Callable[[Work], str] = lambda row: str(row.id),
        order: Order = "oldest",
        busy: Collection[str] = (),
        only: Callable[[Work], bool] = lambda _: True,
    ) -> list[Dispatch]:
        """The due rows to start runs for, at most `limit` groups; rows of one group travel together.

        By priority, then by age, or with `order="newest"` by the group's name, descending. `busy` names the
        dispatches whose run is queued or running: their rows are left out, as are those that `only`
        refuses. A row whose run ended without claiming it waits first, counted from now.
        """
        if self.kind_named(kind).pulled:
            raise ValueError(f"{kind} is pulled: start a run when its backlog shows due work")
        now = self.clock()
        with reading(self.engine) as connection:
            free = [row for row in _due_rows(connection, kind, order, now) if row.dispatch_id not in busy]
        late = {row.id for row in free if _is_unclaimed(row)}
        groups = _groups([row for row in free if row.id not in late and only(row)], group, order)
        wanted = dict(list(groups.items())[: max(limit, 0)])
        ids = late.union(row.id for rows in wanted.values() for row in rows)
        if not ids:
            return []
        with writing(self.engine) as connection:
            # Read again under the lock: another pass may have dispatched them meanwhile.
            ours = {
                row.id: row
                for row in lock_ids(connection, ids, skip_locked=True)
                if row.status in WAITING and row.not_before <= now and row.dispatch_id not in busy
            }
            ended = [row for row in ours.values() if _is_unclaimed(row)]
            changes = [Change(row, unclaimed(row, now), "unclaimed") for row in ended]
            dispatches: list[Dispatch] = []
            for name, rows in wanted.items():
                number = secrets.token_hex(8)
                batch = [ours[row.id] for row in rows if row.id in ours and not _is_unclaimed(ours[row.id])]
                sent = [Change(row, dispatched(row, number, now), "dispatched") for row in batch]
                if sent:
                    dispatches.append(Dispatch(number, name, tuple(change.after for change in sent)))
                    changes += sent
            write(connection, changes, now)
        return dispatches

    def sent(self, dispatch_id: str) -> list[Work]:
        """The rows that were dispatched under this id and not again since."""
        return self._rows(select_work().where(work.c.dispatch_id == dispatch_id).order_by(work.c.id))


def _is_unclaimed(row: Work) -> bool:
    return row.dispatch_id is not None and row.dispatches > 0


def _due_rows(connection: Connection, kind: str, order: Order, now: datetime) -> list[Work]:
    age = work.c.id.desc() if order == "newest" else work.c.id
    query = select_work().where(is_due(kind, now)).order_by(work.c.priority.desc(), age).limit(CANDIDATES)
    return [as_work(row) for row in connection.execute(query)]


def _groups(rows: Sequence[Work], group: Callable[[Work], str], order: Order) -> dict[str, list[Work]]:
    """The groups, most urgent first, of rows that come so."""
    found: dict[str, list[Work]] = defaultdict(list)
    for row in rows:
        found[group(row)].append(row)
    names = list(found)
    if order == "newest":
        names.sort(key=lambda name: (found[name][0].priority, name), reverse=True)
    return {name: sorted(found[name], key=lambda row: row.id) for name in names}

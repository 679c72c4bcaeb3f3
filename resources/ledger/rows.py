"""Rows in and out of the database, always as sets: lock, read, write, append events.

Whoever changes rows first reads them here for update, decides by `transitions.py`, and writes the
differences back in the same transaction. Locks are taken in the order of ids, so no two transactions
wait for each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, insert, or_, select, update
from sqlalchemy import Select as SqlSelect
from sqlalchemy.engine import Row

from resources.database.statements import CHUNK, chunks
from resources.ledger.model import Work
from resources.ledger.schema import ACTIVE, RUNNING, WAITING, is_waiting, work, work_event
from resources.ledger.standing import may_stand, standing

_COLUMNS = [one.name for one in fields(Work)]
_FIXED = {"id", "kind", "key", "created_at", "max_attempts"}
_UPDATE = (
    update(work)
    .where(work.c.id == bindparam("this_id"), work.c.fence == bindparam("this_fence"))
    .values({name: bindparam(name) for name in _COLUMNS if name not in _FIXED})
)


@dataclass(frozen=True, slots=True)
class Change:
    """One row before and after, and the name of what happened to it."""

    before: Work
    after: Work
    event: str


@dataclass(slots=True)
class KeyState:
    """What the ledger knows of one key: its rows that are not finished, and the finished ones of interest,
    oldest first."""

    waiting: Work | None = None
    running: Work | None = None
    finished: list[Work] = field(default_factory=list)

    @property
    def standing(self) -> list[Work]:
        return standing(self.finished)

    @property
    def last_word(self) -> Work | None:
        """The newest row that stands."""
        return next(reversed(self.standing), None)

    def had_by(self, run_id: str) -> Work | None:
        """The newest finished row of this run, whatever came after. `read_keys` has to be told the run."""
        return next((row for row in reversed(self.finished) if row.run_id == run_id), None)


def as_work(row: Row[Any]) -> Work:
    values: tuple[Any, ...] = tuple(row)
    return Work(*values)


def select_work() -> SqlSelect[Any]:
    return select(*[work.c[name] for name in _COLUMNS])


def read_keys(
    connection: Connection, kind: str, keys: Collection[str], *, lock: bool, run_id: str | None = None
) -> dict[str, KeyState]:
    """The state of each key, all of them present in the answer; with `run_id`, also what that run had."""
    states = {key: KeyState() for key in keys}
    # One statement where it locks: ids of one chunk may lie below those of the chunk before. SQLite, which
    # has no row locks, does not take as many values at once.
    size = max(len(states), 1) if lock and connection.dialect.name == "postgresql" else CHUNK
    for chunk in chunks(states, size):
        wanted = or_(work.c.status.in_(ACTIVE), may_stand())
        if run_id is not None:
            wanted = or_(wanted, work.c.run_id == run_id)
        query = select_work().where(work.c.kind == kind, work.c.key.in_(chunk), wanted).order_by(work.c.id)
        for row in connection.execute(query.with_for_update() if lock else query):
            _file(states, as_work(row))
    return states


def _file(states: dict[str, KeyState], row: Work) -> None:
    state = states[row.key]
    if row.status in WAITING:
        state.waiting = row
    elif row.status == RUNNING:
        state.running = row
    else:
        state.finished.append(row)


def lock_ids(connection: Connection, ids: Collection[int], *, skip_locked: bool = False) -> list[Work]:
    """These rows, ours until the transaction ends; those another transaction has are left out if asked."""
    found: list[Work] = []
    for chunk in chunks(sorted(ids)):
        query = select_work().where(work.c.id.in_(chunk)).order_by(work.c.id)
        found += map(as_work, connection.execute(query.with_for_update(skip_locked=skip_locked)))
    return found


def lock_waiting_siblings(connection: Connection, rows: Sequence[Work]) -> dict[tuple[str, str], Work]:
    """The waiting rows behind these running ones.

    A statement of its own, after the running rows are locked: only then can no wish slip in between.
    """
    by_kind: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        by_kind[row.kind].append(row.key)
    found: dict[tuple[str, str], Work] = {}
    for kind, keys in by_kind.items():
        for chunk in chunks(sorted(keys)):
            query = (
                select_work()
                .where(work.c.kind == kind, work.c.key.in_(chunk), is_waiting())
                .order_by(work.c.id)
                .with_for_update()
            )
            found |= {(row.kind, row.key): row for row in map(as_work, connection.execute(query))}
    return found


def create(connection: Connection, rows: Sequence[Work], at: datetime) -> list[Work]:
    """Insert new generations and give them back with their ids."""
    if not rows:
        return []
    values = [{name: getattr(row, name) for name in _COLUMNS if name != "id"} for row in rows]
    returned = connection.execute(insert(work).returning(work.c.id, work.c.kind, work.c.key), values)
    ids = {(kind, key): number for number, kind, key in returned}
    created = [_with_id(row, ids[row.kind, row.key]) for row in rows]
    append_events(connection, [(row, "created") for row in created], at)
    return created


def _with_id(row: Work, number: int) -> Work:
    values = {name: getattr(row, name) for name in _COLUMNS}
    return Work(**{**values, "id": number})


def write(connection: Connection, changes: Sequence[Change], at: datetime) -> None:
    """Write rows this transaction has locked, and what happened to them."""
    if not changes:
        return
    # Rows leave a status before others enter it: one of a key at most may wait.
    ordered = sorted(changes, key=lambda change: change.after.status in ACTIVE)
    connection.execute(_UPDATE, [_parameters(change) for change in ordered])
    append_events(connection, [(change.after, change.event) for change in changes], at)


def _parameters(change: Change) -> dict[str, Any]:
    values = {name: getattr(change.after, name) for name in _COLUMNS if name not in _FIXED}
    return {**values, "this_id": change.before.id, "this_fence": change.before.fence}


def append_events(connection: Connection, happened: Sequence[tuple[Work, str]], at: datetime) -> None:
    connection.execute(
        insert(work_event),
        [
            {
                "work_id": row.id,
                "at": at,
                "event": event,
                "status": row.status,
                "attempt": row.attempts,
                "run_id": row.run_id,
                "reason_code": row.reason_code,
                "error_kind": row.error_kind,
                "error": row.error,
            }
            for row, event in happened
        ],
    )


def renew(connection: Connection, fences: dict[int, int], lease_until: datetime) -> set[int]:
    """Prolong the leases of rows still running under these fences; gives the ids of those that were."""
    # Locked in the order of ids first: an UPDATE takes its locks in an order of its own.
    running: list[int] = []
    for chunk in chunks(sorted(fences)):
        query = select(work.c.id, work.c.fence).where(work.c.id.in_(chunk), work.c.status == RUNNING)
        locked = connection.execute(query.order_by(work.c.id).with_for_update())
        running += [number for number, fence in locked if fence == fences[number]]
    for chunk in chunks(running):
        connection.execute(update(work).where(work.c.id.in_(chunk)).values(lease_until=lease_until))
    return set(running)

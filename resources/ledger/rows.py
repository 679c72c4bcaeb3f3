"""Rows in and out of the database, always as sets: lock, read, write, append events.

An operation that changes rows first reads them here for update, decides by `transitions.py`, and writes
the differences back in the same transaction. Locks are taken in the order of ids, so no two transactions
wait for each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, or_, select, update
from sqlalchemy import Select as SqlSelect
from sqlalchemy.engine import Row

from domain.shared.work import ACTIVE, RUNNING, WAITING, Work
from resources.database.statements import CHUNK, chunks, rows_in
from resources.ledger.history import KeyState, may_count
from resources.ledger.schema import is_waiting, work, work_event

_COLUMNS = [one.name for one in fields(Work)]
_CHANGING = [n for n in _COLUMNS if n not in ("id", "kind", "key", "created_at", "max_attempts")]
_UPDATE = (
    update(work)
    .where(work.c.id == bindparam("this_id"), work.c.fence == bindparam("this_fence"))
    .values({name: bindparam(name) for name in _CHANGING})
)


@dataclass(frozen=True, slots=True)
class Change:
    """One row before and after, and the name of what happened to it; without a name it leaves no event."""

    before: Work
    after: Work
    event: str


def is_id(number: int) -> bool:
    """Whether it can be an id: a larger number is an error to a database."""
    return 0 < number < 2**63


def as_work(row: Row[Any]) -> Work:
    values: tuple[Any, ...] = tuple(row)
    return Work(*values)


def select_work() -> SqlSelect[Any]:
    return select(*[work.c[name] for name in _COLUMNS])


def read_keys(
    connection: Connection, kind: str, keys: Collection[str], *, lock: bool, run_id: str | None = None
) -> dict[str, KeyState]:
    """The state of each key, all of them present in the answer; with `run_id`, also that run's rows."""
    states = {key: KeyState() for key in keys}
    # One statement where it locks: ids of one chunk may lie below those of the chunk before. SQLite, which
    # has no row locks, does not take as many values at once.
    size = max(len(states), 1) if lock and connection.dialect.name == "postgresql" else CHUNK
    for chunk in chunks(states, size):
        wanted = or_(work.c.status.in_(ACTIVE), may_count())
        if run_id is not None:
            wanted = or_(wanted, work.c.run_id == run_id)
        query = select_work().where(work.c.kind == kind, work.c.key.in_(chunk), wanted).order_by(work.c.id)
        for row in connection.execute(query.with_for_update() if lock else query):
            _add(states[row.key], as_work(row))
    return states


def _add(state: KeyState, row: Work) -> None:
    if row.status in WAITING:
        state.waiting = row
    elif row.status == RUNNING:
        state.running = row
    else:
        state.finished.append(row)


def lock_ids(connection: Connection, ids: Collection[int], *, skip_locked: bool = False) -> list[Work]:
    """These rows, ours until the transaction ends; rows that others have locked are left out if asked."""
    query = select_work().order_by(work.c.id).with_for_update(skip_locked=skip_locked)
    return list(map(as_work, rows_in(connection, query, work.c.id, ids)))


def lock_waiting_siblings(connection: Connection, rows: Iterable[Work]) -> dict[tuple[str, str], Work]:
    """The waiting rows behind these running ones.

    A statement of its own, after the running rows are locked: only then can no request slip in between.
    """
    by_kind: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        by_kind[row.kind].append(row.key)
    found: list[Work] = []
    for kind, keys in by_kind.items():
        query = select_work().where(work.c.kind == kind, is_waiting()).order_by(work.c.id).with_for_update()
        found += map(as_work, rows_in(connection, query, work.c.key, keys))
    return {(row.kind, row.key): row for row in found}


def create(connection: Connection, rows: Sequence[Work], at: datetime) -> list[Work]:
    """Insert new generations; returns them with their ids."""
    if not rows:
        return []
    values = [{name: getattr(row, name) for name in _COLUMNS if name != "id"} for row in rows]
    returned = connection.execute(insert(work).returning(work.c.id, work.c.kind, work.c.key), values)
    ids = {(kind, key): number for number, kind, key in returned}
    created = [replace(row, id=ids[row.kind, row.key]) for row in rows]
    _append_events(connection, [(row, "created") for row in created], at)
    return created


def write(connection: Connection, changes: Sequence[Change], at: datetime) -> None:
    """Write rows this transaction has locked, and what happened to them."""
    # Rows leave a status before others enter it: one of a key at most may wait.
    ordered = sorted(changes, key=lambda change: change.after.status in ACTIVE)
    if ordered:
        values = [
            {name: getattr(change.after, name) for name in _CHANGING}
            | {"this_id": change.before.id, "this_fence": change.before.fence}
            for change in ordered
        ]
        connection.execute(_UPDATE, values)
    _append_events(connection, [(change.after, change.event) for change in changes if change.event], at)


_EVENT = ("status", "run_id", "reason_code", "error_kind", "error")


def _append_events(connection: Connection, events: Sequence[tuple[Work, str]], at: datetime) -> None:
    rows = [
        {"work_id": row.id, "at": at, "event": event, "attempt": row.attempts}
        | {name: getattr(row, name) for name in _EVENT}
        for row, event in events
    ]
    if rows:
        connection.execute(insert(work_event), rows)


def recorded_statuses(connection: Connection, ids: Collection[int]) -> dict[int, str]:
    """By row, the status that its newest event records: a poller's claim left none."""
    newest = select(func.max(work_event.c.id)).group_by(work_event.c.work_id)
    events = (row[0] for row in rows_in(connection, newest, work_event.c.work_id, ids))
    query = select(work_event.c.work_id, work_event.c.status)
    return {row[0]: row[1] for row in rows_in(connection, query, work_event.c.id, events)}


def renew(connection: Connection, fences: Mapping[int, int], lease_until: datetime) -> set[int]:
    """Prolong the leases of rows still running under these fences; returns the ids of those that were."""
    # Locked in the order of ids first: an UPDATE takes its locks in an order of its own.
    query = select(work.c.id, work.c.fence).where(work.c.status == RUNNING).order_by(work.c.id)
    locked = rows_in(connection, query.with_for_update(), work.c.id, fences)
    running = [number for number, fence in locked if fence == fences[number]]
    for chunk in chunks(running):
        connection.execute(update(work).where(work.c.id.in_(chunk)).values(lease_until=lease_until))
    return set(running)

"""Calling work off and trying it again: what a person may do to a row, and a look to what it wished for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, Engine

from domain.shared.error import InvalidInput
from domain.shared.work import Kind, WorkRequest
from resources.database.engine import reading, writing
from resources.database.statements import lock_name
from resources.ledger.enqueue import kind_named
from resources.ledger.model import Work
from resources.ledger.pipelines import inherit
from resources.ledger.queries import get
from resources.ledger.rows import Change, create, lock_ids, read_keys, write
from resources.ledger.schema import CANCELLED, FINISHED, WAITING
from resources.ledger.standing import RETRIED
from resources.ledger.transitions import cancelled, first_generation, made_due


def cancel(engine: Engine, work_id: int, now: datetime, *, reason_code: str) -> Work:
    """End the row, even a running one: its fence moves, so its holder's next write changes nothing."""
    with writing(engine) as connection:
        if get(connection, work_id) is None:
            raise _unknown(work_id)
        rows = lock_ids(connection, [work_id])
        if not rows:
            raise _unknown(work_id)
        row = rows[0]
        if row.status == CANCELLED:
            return row
        if row.status in FINISHED:
            raise InvalidInput(f"work {work_id} is {row.status} already", reason_code="already_finished")
        after = cancelled(row, now, reason_code=reason_code)
        write(connection, [Change(row, after, "cancelled")], now)
        return after


def withdraw(engine: Engine, seen: Sequence[Work], now: datetime, *, reason_code: str) -> list[Work]:
    """Call off those of these waiting rows to which nothing has happened since they were seen."""
    known = {row.id: row for row in seen if row.status in WAITING}
    if not known:
        return []
    with writing(engine) as connection:
        same = [row for row in lock_ids(connection, known) if row == known[row.id]]
        changes = [Change(row, cancelled(row, now, reason_code=reason_code), "cancelled") for row in same]
        write(connection, changes, now)
    return [change.after for change in changes]


def retry(engine: Engine, kinds: Mapping[str, Kind], work_id: int, now: datetime) -> Work:
    """A waiting row becomes due now; a finished one gets a new generation, whose id is given back."""
    with reading(engine) as connection:
        known = get(connection, work_id)
    if known is None:
        raise _unknown(work_id)
    with writing(engine) as connection:
        lock_name(connection, known.kind)
        state = read_keys(connection, known.kind, [known.key], lock=True)[known.key]
        if state.running is not None:
            raise InvalidInput(
                f"{known.kind} {known.key} is running as work {state.running.id}",
                reason_code="already_running",
                remedy="wait for it, or cancel it first",
            )
        if state.waiting is not None:
            after = made_due(state.waiting, now)
            write(connection, [Change(state.waiting, after, "retried")], now)
            return after
        # What was asked for; if something came after it, that.
        named = next((row for row in state.standing if row.id == work_id), None)
        return _reborn(connection, kind_named(kinds, known.kind), named or state.last_word or known, now)


def _reborn(connection: Connection, kind: Kind, last: Work, now: datetime) -> Work:
    item = WorkRequest(
        kind=last.kind,
        key=last.key,
        fingerprint=last.fingerprint,
        reason_code=RETRIED,
        params=last.params,
        tenant=last.tenant,
        priority=last.priority,
        parent_id=last.id,
        once=last.once,
    )
    created = create(connection, [first_generation(item, kind, now)], now)[0]
    inherit(connection, [(last.id, created.id)])
    return created


def _unknown(work_id: int) -> InvalidInput:
    return InvalidInput(
        f"there is no work {work_id}", reason_code="unknown_work", remedy="see `perennial work list`"
    )

"""What a clock that ran ahead left behind, once it was put back: leases and waits that end a day too late.

Nobody steals here. A lease nobody can have been given is cut to what its holder may have now, under the same
fence: who lives renews it, who is dead is found when it ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, Engine, select

from resources.database.engine import reading, writing
from resources.database.statements import chunks
from resources.ledger.model import WORKER, Work
from resources.ledger.rows import Change, append_events, lock_ids, renew, write
from resources.ledger.schema import RUNNING, WAITING, is_waiting, work, work_event
from resources.ledger.transitions import CLOCKS_APART, LEASE, LONGEST_LEASE, reckoned

PUT_BACK = "clock_put_back"


def is_impossible(row: Work, machine_now: datetime) -> bool:
    """Whether the lease ends later than any that can have been given by now."""
    return (
        row.status == RUNNING
        and row.lease_until is not None
        and row.lease_until > machine_now + LONGEST_LEASE
    )


def cut_leases(connection: Connection, rows: Sequence[Work], machine_now: datetime, now: datetime) -> None:
    """Cut the leases of these rows, which this transaction has locked."""
    stories = _stories(connection, [row.id for row in rows])
    fences: dict[timedelta, dict[int, int]] = defaultdict(dict)
    for row in rows:
        fences[_due_to(row, stories[row.id])][row.id] = row.fence
    for length, some in fences.items():
        renew(connection, some, machine_now + length)
    # A holder whose own clock is wrong gives itself such a lease with every heartbeat: told once.
    news = [(row, PUT_BACK) for row in rows if stories[row.id][-1:] != [PUT_BACK]]
    if news:
        append_events(connection, news, now)


def _due_to(row: Work, story: Sequence[str]) -> timedelta:
    """What its holder needs: between the passes of a run, and from a worker, no heartbeat comes."""
    newest = next((event for event in reversed(story) if event != PUT_BACK), "")
    beats = newest != "pass_failed" and not (row.run_id or "").startswith(WORKER)
    return LEASE if beats else LONGEST_LEASE


def _stories(connection: Connection, ids: Collection[int]) -> dict[int, list[str]]:
    stories: dict[int, list[str]] = defaultdict(list)
    for chunk in chunks(sorted(ids)):
        query = select(work_event.c.work_id, work_event.c.event).where(work_event.c.work_id.in_(chunk))
        for number, event in connection.execute(query.order_by(work_event.c.id)):
            stories[number].append(event)
    return stories


def count_waits_anew(engine: Engine, now: datetime) -> None:
    """Waiting rows that were written later than now wait as long as they were to wait, from now on."""
    late = select(work.c.id).where(
        is_waiting(), work.c.updated_at > now + CLOCKS_APART, work.c.not_before > now
    )
    with reading(engine) as connection:
        ids = connection.execute(late).scalars().all()
    if not ids:
        return
    with writing(engine) as connection:
        rows = [row for row in lock_ids(connection, ids, skip_locked=True) if row.status in WAITING]
        changes = [Change(row, after, PUT_BACK) for row in rows if (after := reckoned(row, now)) is not row]
        write(connection, changes, now)

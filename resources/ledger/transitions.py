"""How a row changes: pure functions from a row, an event and a `now` to the row afterwards.

The rules of the ledger live here. Nothing reads or writes a database; `rows.py` does that.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from domain.shared.backoff import Backoff
from domain.shared.work import (
    CANCELLED,
    COMPLETED,
    DEATHS,
    DEFERRED,
    FAILED,
    QUEUED,
    RUNNING,
    SKIPPED,
    SUPERSEDED,
    Kind,
    Work,
    WorkRequest,
)
from resources.ledger.history import KeyState
from resources.ledger.model import BY_A_PERSON, RETRIED
from resources.ledger.outcome import Outcome

LEASE = timedelta(seconds=60)
"""How long a holder is believed without a heartbeat, on the machine clock."""

STILL_WANTED = timedelta(seconds=60)
"""Requested again within so long after it ended: the work did not help. Some passes, however busy."""
FREE_RECURRENCES = 2

START_GRACE = timedelta(seconds=120)
"""How long a dispatch waits for its run to be known as queued or running."""
REDISPATCH = Backoff(base=timedelta(seconds=60), factor=2, cap=timedelta(minutes=15))
"""How long a row waits after its run ended without claiming it, before it is dispatched again."""

Decision = Literal["created", "updated", "absorbed", "refused"]
"""The lists of an `EnqueueReport`."""


def decide_request(item: WorkRequest, kind: Kind, state: KeyState, now: datetime) -> tuple[Decision, Work]:
    """What one request does to the rows of its key; for "created" the row has no id yet."""
    waiting, running, counting = state.waiting, state.running, state.counting
    if waiting is not None:
        changed = _updated_request(waiting, item, now)
        return ("absorbed", waiting) if changed is waiting else ("updated", changed)
    if running is not None:
        if running.fingerprint == item.fingerprint:
            return "absorbed", running
        return "created", first_generation(item, kind, now)
    if item.once and counting:
        return "absorbed", counting[-1]
    last = next((row for row in counting if row.fingerprint == item.fingerprint), None)
    if last is None:
        return "created", first_generation(item, kind, now)
    if last.status in (FAILED, CANCELLED):
        return "refused", last
    return "created", next_generation(item, kind, last, now)


def _updated_request(row: Work, item: WorkRequest, now: datetime) -> Work:
    changed = replace(
        row,
        fingerprint=item.fingerprint,
        # A plan gives none: what a person gave with a request that still waits counts.
        params=dict(item.params) or row.params,
        tenant=item.tenant,
        priority=item.priority,
        once=item.once,
        parent_id=row.parent_id if item.parent_id is None else item.parent_id,
        # A row that failed keeps its reason; only a person's request may replace that.
        reason_code=item.reason_code if not row.error or item.reason_code in BY_A_PERSON else row.reason_code,
    )
    if changed == row:
        return row
    undisturbed = row.status == QUEUED and row.dispatch_id is None and row.attempts == 0
    if row.fingerprint != item.fingerprint and undisturbed:
        # Only a request's own date moves with the request; a backoff or a run on its way is left alone.
        due, fixed = item.not_before or now, item.not_before is not None
        changed = replace(changed, not_before=due, not_before_fixed=fixed, recurrence=0)
    return replace(changed, updated_at=now)


def request_of(row: Work) -> WorkRequest:
    """What the row was requested as, for a new generation of it."""
    return WorkRequest(
        row.kind,
        row.key,
        row.fingerprint,
        params=row.params,
        tenant=row.tenant,
        priority=row.priority,
        once=row.once,
    )


def first_generation(item: WorkRequest, kind: Kind, now: datetime) -> Work:
    return Work(
        id=0,
        kind=item.kind,
        key=item.key,
        status=QUEUED,
        reason_code=item.reason_code,
        fingerprint=item.fingerprint,
        params=dict(item.params),
        tenant=item.tenant,
        priority=item.priority,
        once=item.once,
        parent_id=item.parent_id,
        max_attempts=kind.transient.max_attempts,
        not_before=item.not_before or now,
        not_before_fixed=item.not_before is not None,
        created_at=now,
        updated_at=now,
    )


def next_generation(item: WorkRequest, kind: Kind, last: Work, now: datetime) -> Work:
    """A generation after one that ended well. Requested again for the same reason, it waits ever longer.

    Work that did not help is requested again by the very next pass. A key that was quiet for longer was
    helped, and is broken anew: it is done at once, as are the first recurrences, because the same thing may
    well break twice.
    """
    row = first_generation(item, kind, now)
    ended = last.finished_at or last.updated_at
    if now - ended > STILL_WANTED:
        return row
    recurrence = last.recurrence + 1
    slow = recurrence - FREE_RECURRENCES
    wait = timedelta(0) if slow <= 0 else kind.recurrence_backoff.delay(slow - 1)
    return replace(row, recurrence=recurrence, not_before=max(row.not_before, ended + wait))


def dispatched(row: Work, dispatch_id: str, now: datetime) -> Work:
    return replace(
        row,
        status=QUEUED,
        dispatch_id=dispatch_id,
        dispatches=row.dispatches + 1,
        not_before=now + START_GRACE,
        not_before_fixed=False,
        updated_at=now,
    )


def unclaimed(row: Work, now: datetime) -> Work:
    """A dispatched row whose run ended without claiming it: it waits, counted from that end."""
    wait = REDISPATCH.delay(max(row.dispatches - 1, 0))
    return replace(row, dispatch_id=None, not_before=now + wait, updated_at=now)


def claimed(row: Work, run_id: str, *, now: datetime, lease_until: datetime, attempt: bool) -> Work:
    """The row leased to `run_id`; `attempt` says whether that counts as one."""
    return replace(
        row,
        status=RUNNING,
        run_id=run_id,
        lease_until=lease_until,
        fence=row.fence + 1,
        attempts=row.attempts + attempt,
        dispatches=0,
        started_at=row.started_at or now,
        updated_at=now,
    )


def settled(row: Work, outcome: Outcome, kind: Kind, now: datetime) -> Work:
    """The row after an attempt ended as `outcome` says."""
    row = replace(row, reason_code=outcome.reason_code)
    if outcome.verb in ("complete", "skip"):
        done = replace(row, error_kind=None, error=None)
        return finished(done, COMPLETED if outcome.verb == "complete" else SKIPPED, now)
    if outcome.verb == "release":
        released = replace(row, attempts=max(row.attempts - 1, 0), run_id=None)
        return _waiting(released, QUEUED, now, not_before=now)
    if outcome.cause is not None:
        row = replace(row, error_kind=outcome.cause.kind, error=outcome.cause.error)
    if outcome.verb == "fail":
        return finished(row, FAILED, now)
    if outcome.verb == "repeat":
        # The dispatch stays: while its run lives, no other run is started for the row.
        again = _waiting(row, QUEUED, now, not_before=outcome.not_before or now)
        return replace(again, dispatch_id=row.dispatch_id)
    return _deferred(row, outcome, kind, now)


def _deferred(row: Work, outcome: Outcome, kind: Kind, now: datetime) -> Work:
    cause = outcome.cause
    unclassified = cause is not None and cause.kind == "unclassified"
    # Its holder lived to answer: the deaths before were not its doing.
    row = replace(row, crash_count=row.crash_count + unclassified, deaths=0)
    exhausted = row.max_attempts is not None and row.attempts >= row.max_attempts
    if outcome.not_before is not None:
        due = outcome.not_before
    elif exhausted or (unclassified and kind.unclassified.exhausted(row.crash_count)):
        return finished(row, FAILED, now)
    elif unclassified:
        due = now + kind.unclassified.delay(row.crash_count - 1)
    elif cause is not None and cause.retry_after is not None:
        due = now + cause.retry_after
    else:
        due = now + kind.transient.delay(max(row.attempts - 1, 0))
    fixed = outcome.not_before is not None or (cause is not None and cause.retry_after is not None)
    return _waiting(row, DEFERRED, now, not_before=due, fixed=fixed)


def orphaned(
    row: Work, *, why: str, now: datetime, silent: timedelta = timedelta(0), attempt: bool = True
) -> Work:
    """A row whose holder died: it waits, counted from the holder's last sign of life, or is given up.

    A killed process says nothing about what it worked on: its death is no attempt. Only work that kills
    all its workers is given up, after many deaths.
    """
    row = replace(row, deaths=row.deaths + 1, attempts=max(row.attempts - attempt, 0), reason_code=why)
    if DEATHS.exhausted(row.deaths):
        error = f"given up after {row.deaths} deaths: the last holder, {row.run_id}, died ({why})"
        given = replace(row, reason_code="abandoned", error_kind="abandoned", error=error)
        return finished(given, FAILED, now)
    wait = max(DEATHS.delay(row.deaths - 1) - silent, timedelta(0))
    return _waiting(row, QUEUED, now, not_before=now + wait)


def made_due(row: Work, now: datetime, reason_code: str = RETRIED) -> Work:
    """A waiting row that a person wants now."""
    return _waiting(replace(row, reason_code=reason_code, dispatches=0), QUEUED, now, not_before=now)


def inherited(old: Work, back: Work, newer: Work, now: datetime) -> tuple[Work, Work]:
    """`old` was to wait again (as `back`), but a newer request for its key waits already.

    Only one row of a key may wait: the newer one goes on, with the attempts and the wait of the older one,
    which is superseded.
    """
    ended = replace(old, reason_code=SUPERSEDED, error_kind=back.error_kind, error=back.error)
    heir = replace(
        newer,
        status=back.status,
        reason_code=back.reason_code,
        error_kind=back.error_kind,
        error=back.error,
        attempts=back.attempts,
        crash_count=back.crash_count,
        deaths=back.deaths,
        not_before=max(newer.not_before, back.not_before),
        not_before_fixed=newer.not_before_fixed or back.not_before_fixed,
        updated_at=now,
    )
    return finished(ended, SUPERSEDED, now), heir


def finished(row: Work, status: str, now: datetime, *, reason_code: str | None = None) -> Work:
    return replace(
        row,
        status=status,
        reason_code=row.reason_code if reason_code is None else reason_code,
        lease_until=None,
        fence=row.fence + 1,
        updated_at=now,
        finished_at=now,
    )


def _waiting(row: Work, status: str, now: datetime, *, not_before: datetime, fixed: bool = False) -> Work:
    return replace(
        row,
        status=status,
        not_before=not_before,
        not_before_fixed=fixed,
        dispatch_id=None,
        lease_until=None,
        fence=row.fence + 1,
        updated_at=now,
    )

"""How a row changes: pure functions from a row, an event and a `now` to the row afterwards.

The rules of the ledger live here. Nothing reads or writes a database; `rows.py` does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from domain.shared.backoff import Backoff
from domain.shared.work import Kind, WorkRequest
from resources.ledger.model import WORKER, Work
from resources.ledger.outcome import Outcome
from resources.ledger.schema import CANCELLED, COMPLETED, DEFERRED, FAILED, QUEUED, RUNNING, SKIPPED
from resources.ledger.standing import BY_A_PERSON, RETRIED, SUPERSEDED

LEASE = timedelta(seconds=60)
"""How long a holder is believed without a heartbeat, on the machine clock."""
LONGEST_LEASE = timedelta(hours=1) + LEASE
"""Nobody is given more, for whatever pause: a lease that ends later is of a clock that was put back since."""
CLOCKS_APART = timedelta(minutes=5)
"""Clocks that are in order differ by less: a row of a later moment was written by one that ran ahead."""

STILL_WANTED = timedelta(seconds=60)
"""Wanted again within so long after it ended: the work did not help. Some looks, however busy."""
FREE_REPEATS = 2

DISPATCH_PATIENCE = Backoff(base=timedelta(seconds=120), factor=2, cap=timedelta(minutes=15))
"""How long a dispatched row waits for its run to claim it before it may be dispatched again."""

Verdict = Literal["create", "update", "absorb", "refuse"]


def judge_request(
    item: WorkRequest,
    kind: Kind,
    *,
    waiting: Work | None,
    running: Work | None,
    standing: Sequence[Work],
    now: datetime,
) -> tuple[Verdict, Work]:
    """What one wish does to the rows of its key; for "create" the row has no id yet.

    `standing` are the finished rows that still say something (`standing.py`), oldest first.
    """
    if waiting is not None:
        changed = _updated_request(waiting, item, now)
        return ("absorb", waiting) if changed is waiting else ("update", changed)
    if running is not None:
        if running.fingerprint == item.fingerprint:
            return "absorb", running
        return "create", first_generation(item, kind, now)
    if item.once and standing:
        return "absorb", standing[-1]
    last = next((row for row in standing if row.fingerprint == item.fingerprint), None)
    if last is None:
        return "create", first_generation(item, kind, now)
    if last.status in (FAILED, CANCELLED):
        return "refuse", last
    return "create", next_generation(item, kind, last, now)


def _updated_request(row: Work, item: WorkRequest, now: datetime) -> Work:
    changed = replace(
        row,
        fingerprint=item.fingerprint,
        params=dict(item.params),
        tenant=item.tenant,
        priority=item.priority,
        once=item.once,
        parent_id=row.parent_id if item.parent_id is None else item.parent_id,
        # A row that failed before says why it waits; only a person's wish may cover that up.
        reason_code=item.reason_code if not row.error or item.reason_code in BY_A_PERSON else row.reason_code,
    )
    if changed == row:
        return row
    changed = reckoned(changed, now)
    undisturbed = row.status == QUEUED and row.dispatch_id is None and row.attempts == 0
    if row.fingerprint != item.fingerprint and undisturbed:
        # Only a wish's own date moves with the wish; a backoff or a run on its way is left alone.
        changed = replace(changed, not_before=item.not_before or now, repeats=0)
    return replace(changed, updated_at=now)


def first_generation(item: WorkRequest, kind: Kind, now: datetime) -> Work:
    return Work(
        id=0,
        kind=item.kind,
        key=item.key,
        fingerprint=item.fingerprint,
        params=dict(item.params),
        tenant=item.tenant,
        priority=item.priority,
        once=item.once,
        parent_id=item.parent_id,
        status=QUEUED,
        reason_code=item.reason_code,
        error_kind=None,
        error=None,
        attempts=0,
        strikes=0,
        max_attempts=kind.transient.max_attempts,
        dispatches=0,
        dispatch_id=None,
        repeats=0,
        not_before=item.not_before or now,
        run_id=None,
        lease_until=None,
        fence=0,
        created_at=now,
        started_at=None,
        updated_at=now,
        finished_at=None,
    )


def next_generation(item: WorkRequest, kind: Kind, last: Work, now: datetime) -> Work:
    """A generation after one that ended well. Wanted again for the same reason, it waits ever longer.

    Work that did not help is wanted again at the very next look. A key that was quiet for longer was
    helped, and is broken anew: it is done at once, as are the first repeats, because the same thing may
    well break twice.
    """
    row = first_generation(item, kind, now)
    # A clock that ran ahead may have said that it ended tomorrow.
    ended = min(last.finished_at or last.updated_at, now)
    if now - ended > STILL_WANTED:
        return row
    repeats = last.repeats + 1
    wait = (
        timedelta(0) if repeats <= FREE_REPEATS else kind.recurrence_backoff.delay(repeats - FREE_REPEATS - 1)
    )
    return replace(row, repeats=repeats, not_before=max(row.not_before, ended + wait))


def dispatched(row: Work, dispatch_id: str, now: datetime) -> Work:
    return replace(
        row,
        status=QUEUED,
        dispatch_id=dispatch_id,
        dispatches=row.dispatches + 1,
        not_before=now + DISPATCH_PATIENCE.delay(row.dispatches),
        updated_at=now,
    )


def claimed(row: Work, run_id: str, *, now: datetime, lease_until: datetime) -> Work:
    """The row in the hands of `run_id`. A run that had it before continues its attempt; a worker, which
    goes from row to row under one name, starts a new one."""
    same_attempt = row.run_id == run_id and not run_id.startswith(WORKER)
    return replace(
        row,
        status=RUNNING,
        run_id=run_id,
        lease_until=lease_until,
        fence=row.fence + 1,
        attempts=row.attempts + (0 if same_attempt else 1),
        dispatches=0,
        started_at=row.started_at or now,
        updated_at=now,
    )


def settled(row: Work, outcome: Outcome, kind: Kind, now: datetime) -> Work:
    """The row after an attempt ended as `outcome` says."""
    if outcome.verb in ("complete", "skip"):
        status = COMPLETED if outcome.verb == "complete" else SKIPPED
        done = replace(row, reason_code=outcome.reason_code, error_kind=None, error=None)
        return _finished(done, status, now)
    if outcome.verb == "release":
        return _requeued(
            replace(row, attempts=max(row.attempts - 1, 0), run_id=None, reason_code=outcome.reason_code),
            now,
            not_before=now,
        )
    told = _told(row, outcome)
    return _finished(told, FAILED, now) if outcome.verb == "fail" else _deferred(told, outcome, kind, now)


def _told(row: Work, outcome: Outcome) -> Work:
    cause = outcome.cause
    if cause is None:
        return replace(row, reason_code=outcome.reason_code)
    return replace(
        row,
        reason_code=outcome.reason_code or cause.reason_code,
        error_kind=cause.kind,
        error=cause.error,
    )


def _deferred(row: Work, outcome: Outcome, kind: Kind, now: datetime) -> Work:
    cause = outcome.cause
    unclassified = cause is not None and cause.kind == "unclassified"
    if unclassified:
        row = replace(row, strikes=row.strikes + 1)
    if outcome.not_before is not None:
        due = outcome.not_before
    elif given_up(row, kind, unclassified=unclassified):
        return _finished(row, FAILED, now)
    elif unclassified:
        due = now + kind.unclassified.delay(row.strikes - 1)
    elif cause is not None and cause.retry_after is not None:
        due = now + cause.retry_after
    else:
        due = now + kind.transient.delay(max(row.attempts - 1, 0))
    return replace(
        row,
        status=DEFERRED,
        not_before=due,
        dispatch_id=None,
        lease_until=None,
        fence=row.fence + 1,
        updated_at=now,
    )


def between_passes(row: Work, outcome: Outcome, *, now: datetime, lease_until: datetime) -> Work:
    """A row that keeps its holder although a pass failed: the next pass of the same run is on its way."""
    return replace(_told(row, outcome), lease_until=lease_until, updated_at=now)


def given_up(row: Work, kind: Kind, *, unclassified: bool) -> bool:
    if row.max_attempts is not None and row.attempts >= row.max_attempts:
        return True
    return unclassified and kind.unclassified.exhausted(row.strikes)


def orphaned(row: Work, kind: Kind, *, why: str, now: datetime) -> Work:
    """A row whose holder died: queued again, or given up.

    The maximum is the row's own; where a kind is never given up for transient reasons, dying holders
    count by the unclassified policy, or a row that kills its workers would kill them for ever. The
    first death waits for nothing, the next ones as that policy says.
    """
    row = replace(row, strikes=row.strikes + 1, reason_code=why)
    limit_reached = (
        row.attempts >= row.max_attempts
        if row.max_attempts is not None
        else kind.unclassified.exhausted(row.strikes)
    )
    if limit_reached:
        words = f"given up after {row.attempts} attempts: the last holder, {row.run_id}, died ({why})"
        return _finished(
            replace(row, reason_code="abandoned", error_kind="abandoned", error=words), FAILED, now
        )
    wait = timedelta(0) if row.strikes == 1 else kind.unclassified.delay(row.strikes - 2)
    return _requeued(row, now, not_before=now + wait)


def cancelled(row: Work, now: datetime, *, reason_code: str) -> Work:
    return _finished(replace(row, reason_code=reason_code), CANCELLED, now)


def made_due(row: Work, now: datetime) -> Work:
    """A waiting row that a person wants now."""
    return _requeued(replace(row, reason_code=RETRIED, dispatches=0), now, not_before=now)


def reckoned(row: Work, now: datetime) -> Work:
    """A waiting row with its wait counted from now, if a clock that ran ahead had counted it.

    Which moments such a clock meant nobody knows; how long it meant to wait the row still says. What waits
    for a moment of its own may come too early so, and is then put off again; it never comes a day late.
    """
    if row.updated_at <= now + CLOCKS_APART:
        return row
    wait = max(row.not_before - row.updated_at, timedelta(0))
    return replace(row, not_before=now + wait, updated_at=now)


def superseded(old: Work, back: Work, newer: Work, now: datetime) -> tuple[Work, Work]:
    """`old` was to wait again (as `back`), but a newer wish for its key waits already.

    Only one row of a key may wait: the newer one goes on, with all the patience the older one has used
    up, and the older one ends.
    """
    ended = replace(cancelled(old, now, reason_code=SUPERSEDED), error_kind=back.error_kind, error=back.error)
    newer = reckoned(newer, now)
    heir = replace(
        newer,
        status=back.status,
        reason_code=back.reason_code,
        error_kind=back.error_kind,
        error=back.error,
        attempts=back.attempts,
        strikes=back.strikes,
        not_before=max(newer.not_before, back.not_before),
        updated_at=now,
    )
    return ended, heir


def _requeued(row: Work, now: datetime, *, not_before: datetime) -> Work:
    return replace(
        row,
        status=QUEUED,
        not_before=not_before,
        dispatch_id=None,
        lease_until=None,
        fence=row.fence + 1,
        updated_at=now,
    )


def _finished(row: Work, status: str, now: datetime) -> Work:
    return replace(row, status=status, lease_until=None, fence=row.fence + 1, updated_at=now, finished_at=now)

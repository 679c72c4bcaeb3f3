"""How attempts end: holders' answers, compare-and-set on (id, fence), many rows in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from resources.database.engine import writing
from resources.ledger.context import LedgerContext
from resources.ledger.model import LeaseLost, Work
from resources.ledger.outcome import Outcome, cause_of
from resources.ledger.pipelines import inherit
from resources.ledger.rows import Change, lock_ids, lock_waiting_siblings, recorded_statuses, write
from resources.ledger.schema import DEFERRED, RUNNING, WAITING
from resources.ledger.transitions import inherited, settled

EVENTS = {
    "complete": "completed",
    "skip": "skipped",
    "defer": "deferred",
    "fail": "failed",
    "release": "released",
    "repeat": "pass_failed",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """How the holder of row `id` under `fence` ended its attempt."""

    id: int
    fence: int
    outcome: Outcome


class AnswerOperations(LedgerContext):
    """A worker's answers, by the id and fence of its claim."""

    def complete(self, work_id: int, fence: int, reason_code: str = "") -> Work:
        return self._answer(work_id, fence, Outcome("complete", reason_code))

    def skip(self, work_id: int, fence: int, reason_code: str) -> Work:
        return self._answer(work_id, fence, Outcome("skip", reason_code))

    def defer(
        self,
        work_id: int,
        fence: int,
        error: BaseException | str | None = None,
        *,
        not_before: datetime | None = None,
        reason_code: str | None = None,
    ) -> Work:
        """Try again at `not_before`, or by the kind's backoff. Without an error nothing failed."""
        return self._answer(work_id, fence, deferral(error, not_before, reason_code))

    def fail(
        self, work_id: int, fence: int, error: BaseException | str, *, reason_code: str | None = None
    ) -> Work:
        return self._answer(work_id, fence, failure(error, reason_code))

    def release(self, work_id: int, fence: int, reason_code: str = "released") -> Work:
        """Give the row back; the attempt does not count."""
        return self._answer(work_id, fence, Outcome("release", reason_code))

    def _answer(self, work_id: int, fence: int, outcome: Outcome) -> Work:
        rows, stale = settle(self, [Answer(work_id, fence, outcome)])
        if stale:
            raise LeaseLost(f"work {work_id} is not leased under fence {fence} any more; nothing was changed")
        return next(row for row in rows if row.id == work_id)


def deferral(
    error: BaseException | str | None, not_before: datetime | None, reason_code: str | None
) -> Outcome:
    cause = None if error is None else cause_of(error)
    return Outcome("defer", reason_code or (cause.reason_code if cause else "deferred"), cause, not_before)


def failure(error: BaseException | str, reason_code: str | None) -> Outcome:
    cause = cause_of(error, otherwise="permanent")
    return Outcome("fail", reason_code or cause.reason_code, cause)


def settle(ledger: LedgerContext, answers: Sequence[Answer]) -> tuple[list[Work], list[int]]:
    """Write these answers. Returns the rows afterwards, and the ids that another holder has by now."""
    if not answers:
        return [], []
    now = ledger.clock()
    with writing(ledger.engine) as connection:
        rows = {row.id: row for row in lock_ids(connection, [answer.id for answer in answers])}
        changes: list[Change] = []
        stale: list[int] = []
        for answer in answers:
            row = rows.get(answer.id)
            if row is None or row.fence != answer.fence or row.status != RUNNING:
                stale.append(answer.id)
                continue
            after = settled(row, answer.outcome, ledger.policy_of(row), now)
            verb = answer.outcome.verb
            gave_up = verb == "defer" and after.status not in WAITING
            changes.append(Change(row, after, "failed" if gave_up else EVENTS[verb]))
        written = write_settled(connection, _without_polls(connection, changes), now)
    return written, stale


def _without_polls(connection: Connection, changes: Sequence[Change]) -> list[Change]:
    """Where a poll found nothing new the row is deferred as before, and its history stays as it is."""
    quiet = [c.before.id for c in changes if c.after.status == DEFERRED and c.after.error == c.before.error]
    recorded = recorded_statuses(connection, quiet)
    return [Change(c.before, c.after, "") if recorded.get(c.before.id) == DEFERRED else c for c in changes]


def write_settled(connection: Connection, changes: Sequence[Change], now: datetime) -> list[Work]:
    """Write rows that leave `running`; those that would wait beside a newer request are superseded by it."""
    siblings = lock_waiting_siblings(connection, [c.before for c in changes if c.after.status in WAITING])
    final: list[Change] = []
    heirs: list[tuple[int, int]] = []
    for change in changes:
        newer = siblings.get((change.before.kind, change.before.key))
        if newer is None or change.after.status not in WAITING:
            final.append(change)
            continue
        ended, heir = inherited(change.before, change.after, newer, now)
        final += [Change(change.before, ended, "superseded"), Change(newer, heir, "inherited")]
        heirs.append((ended.id, heir.id))
    write(connection, final, now)
    inherit(connection, heirs)
    return [change.after for change in final]

"""How attempts end: holders' answers, compare-and-set on (id, fence), many rows in one transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Generic, TypeVar

from sqlalchemy import Connection

from domain.shared.work import DEFERRED, RUNNING, WAITING, Work
from resources.database.engine import writing
from resources.ledger.context import LedgerContext
from resources.ledger.model import LeaseLost
from resources.ledger.outcome import Outcome, cause_of
from resources.ledger.pipelines import inherit
from resources.ledger.rows import Change, lock_ids, lock_waiting_siblings, recorded_statuses, write
from resources.ledger.transitions import inherited, settled

T = TypeVar("T")
Answer = tuple[int, int, Outcome]
"""How the holder of a row, by its id and fence, ended its attempt."""

_EVENTS = {"release": "released", "repeat": "pass_failed"}
"""The events that have another name than the status the row gets."""


class Answers(ABC, Generic[T]):
    """How a holder ends the attempts at its work: the row that a worker claimed, the key of a lease."""

    @abstractmethod
    def answer(self, work: T, outcome: Outcome) -> None: ...

    def complete(self, work: T, reason_code: str = "") -> None:
        self.answer(work, Outcome("complete", reason_code))

    def skip(self, work: T, reason_code: str) -> None:
        self.answer(work, Outcome("skip", reason_code))

    def defer(
        self,
        work: T,
        error: BaseException | str | None = None,
        *,
        not_before: datetime | None = None,
        reason_code: str | None = None,
    ) -> None:
        """Try again at `not_before`, or by the kind's backoff. Without an error nothing failed."""
        cause = None if error is None else cause_of(error)
        reason_code = reason_code or (cause.reason_code if cause else "deferred")
        self.answer(work, Outcome("defer", reason_code, cause, not_before))

    def fail(self, work: T, error: BaseException | str, *, reason_code: str | None = None) -> None:
        cause = cause_of(error, otherwise="permanent")
        self.answer(work, Outcome("fail", reason_code or cause.reason_code, cause))

    def release(self, work: T, reason_code: str = "released") -> None:
        """Give the work back; the attempt does not count."""
        self.answer(work, Outcome("release", reason_code))


class AnswerOperations(LedgerContext, Answers[Work]):
    def answer(self, work: Work, outcome: Outcome) -> None:
        """Write a worker's answer, by the id and the fence of the row that it claimed."""
        _, stale = settle(self, [(work.id, work.fence, outcome)])
        if stale:
            raise LeaseLost(
                f"work {work.id} is not leased under fence {work.fence} any more; nothing was changed"
            )


def settle(ledger: LedgerContext, answers: Sequence[Answer]) -> tuple[list[Work], set[int]]:
    """Write these answers. Returns the rows afterwards, and the ids that another holder has by now."""
    if not answers:
        return [], set()
    now = ledger.clock()
    with writing(ledger.engine) as connection:
        rows = {row.id: row for row in lock_ids(connection, [number for number, _, _ in answers])}
        changes: list[Change] = []
        stale: set[int] = set()
        for number, fence, outcome in answers:
            row = rows.get(number)
            if row is None or row.fence != fence or row.status != RUNNING:
                stale.add(number)
                continue
            after = settled(row, outcome, ledger.policy_of(row), now)
            changes.append(Change(row, after, _EVENTS.get(outcome.verb, after.status)))
        written = write_settled(connection, _without_polls(connection, changes), now)
    return written, stale


def _without_polls(connection: Connection, changes: Sequence[Change]) -> list[Change]:
    """Where a poll found nothing new the row is deferred as before, and its history stays as it is."""
    quiet = [c.before.id for c in changes if c.after.status == DEFERRED and c.after.error == c.before.error]
    recorded = recorded_statuses(connection, quiet)
    return [Change(c.before, c.after, "") if recorded.get(c.before.id) == DEFERRED else c for c in changes]


def write_settled(connection: Connection, changes: Sequence[Change], now: datetime) -> list[Work]:
    """Write rows that leave `running`; a newer request of the key supersedes those that would wait."""
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

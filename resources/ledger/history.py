"""Which finished rows of a key still count: the rule, for rows and as a condition of queries.

Rows end in three ways. *Tried to the end* (completed, skipped, failed): all that was decided about the key
before is over. *Cancelled* by a person: its own fingerprint is refused, and what was decided about others
stays. *Superseded* by a newer row, or because it is not needed any more: it refuses nothing.

The newest id alone does not decide: a row that is cancelled while an older one runs is newer than that one's
result, and a row that is cancelled before anybody tried it changes nothing about an older refusal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, FromClause, and_, not_, or_, select

from domain.shared.work import CANCELLED, COMPLETED, FAILED, SKIPPED, Work
from resources.ledger.schema import work

TRIED = (COMPLETED, SKIPPED, FAILED)


@dataclass(slots=True)
class KeyState:
    """One key's rows: those that are not finished, and the finished ones of interest, oldest first."""

    waiting: Work | None = None
    running: Work | None = None
    finished: list[Work] = field(default_factory=list)

    @property
    def counting(self) -> list[Work]:
        return counting(self.finished)

    @property
    def last(self) -> Work | None:
        """The newest finished row that counts."""
        return next(reversed(self.counting), None)

    def finished_by(self, run_id: str | None) -> Work | None:
        """The newest finished row of this run, whatever came after."""
        mine = (row for row in reversed(self.finished) if run_id is not None and row.run_id == run_id)
        return next(mine, None)


def counting(rows: Iterable[Work]) -> list[Work]:
    """Of a key's finished rows, oldest first, those that count: one for each fingerprint at most.

    Rows from before the last one that was tried to the end may be missing or not.
    """
    found: list[Work] = []
    for row in rows:
        if row.status in TRIED:
            found = [row]
        elif row.status == CANCELLED:
            found = [*(other for other in found if other.fingerprint != row.fingerprint), row]
    return found


def counts() -> ColumnElement[bool]:
    """The same as a condition."""
    later = work.alias("later")
    same_request = and_(later.c.status == CANCELLED, later.c.fingerprint == work.c.fingerprint)
    replaced = _exists_after(later, or_(later.c.status.in_(TRIED), same_request))
    return and_(work.c.status.in_((*TRIED, CANCELLED)), not_(replaced))


def may_count() -> ColumnElement[bool]:
    """All rows that `counting` needs: those after which nothing was tried to the end."""
    later = work.alias("later")
    return not_(_exists_after(later, later.c.status.in_(TRIED)))


def _exists_after(later: FromClause, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    of_the_key = and_(later.c.kind == work.c.kind, later.c.key == work.c.key, later.c.id > work.c.id)
    return select(later.c.id).where(of_the_key, condition).exists()

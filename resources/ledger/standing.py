"""Which finished rows of a key still say something: written here once, for rows and for queries.

Rows end in three ways. A *verdict* (completed, skipped, failed): somebody tried to the end, and all that was
said of the key before is over. *Given up* (cancelled): nobody did, so it forbids its own fingerprint and what
was said of another one stays. *Not needed*: it ended in favour of a newer row, which speaks for both, or
because what it was for is there already; that forbids nothing.

The newest id alone does not tell: a wish that is called off while an older row runs outlives that row's
verdict, and one that is called off before anybody tried has changed nothing about an older refusal.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import ColumnElement, FromClause, and_, not_, or_, select

from resources.ledger.model import Work
from resources.ledger.schema import CANCELLED, COMPLETED, FAILED, SKIPPED, work

SUPERSEDED = "superseded"
"""The reason code of a row that ended in favour of a newer one."""
DONE_MEANWHILE = "done_meanwhile"
"""The reason code of a row whose work was found done."""
RETRIED = "retried"
"""The reason code of work that a person asked for again."""
ASKED_FOR = "asked_for"
"""The reason code of work that a person asked for, though no plan wants it."""
BY_A_PERSON = (RETRIED, ASKED_FOR)
"""Given to a row when somebody asks; what happens to it later has reasons of its own (`look.asked_for`)."""
NOT_NEEDED = (SUPERSEDED, DONE_MEANWHILE)
VERDICTS = (COMPLETED, SKIPPED, FAILED)


def standing(rows: Iterable[Work]) -> list[Work]:
    """Of a key's finished rows, oldest first, those that stand: one for each fingerprint at most.

    Rows from before the last verdict may be missing or not.
    """
    found: list[Work] = []
    for row in rows:
        if row.status in VERDICTS:
            found = [row]
        elif row.status == CANCELLED and row.reason_code not in NOT_NEEDED:
            found = [*(other for other in found if other.fingerprint != row.fingerprint), row]
    return found


def stands(rows: FromClause = work) -> ColumnElement[bool]:
    """The same as a condition."""
    later = work.alias("later")
    same_request = and_(_is_given_up(later), later.c.fingerprint == rows.c.fingerprint)
    return and_(
        or_(_is_verdict(rows), _is_given_up(rows)),
        not_(_exists_after(rows, later, or_(_is_verdict(later), same_request))),
    )


def may_stand(rows: FromClause = work) -> ColumnElement[bool]:
    """All that `standing` needs: whatever no verdict came after."""
    later = work.alias("later")
    return not_(_exists_after(rows, later, _is_verdict(later)))


def _is_verdict(rows: FromClause) -> ColumnElement[bool]:
    return rows.c.status.in_(VERDICTS)


def _is_given_up(rows: FromClause) -> ColumnElement[bool]:
    return and_(rows.c.status == CANCELLED, rows.c.reason_code.not_in(NOT_NEEDED))


def _exists_after(rows: FromClause, later: FromClause, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return (
        select(later.c.id)
        .where(later.c.kind == rows.c.kind, later.c.key == rows.c.key, later.c.id > rows.c.id, condition)
        .exists()
    )

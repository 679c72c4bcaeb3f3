"""The rows a person may want to see: everything unfinished, and every failure nothing came after."""

from __future__ import annotations

from sqlalchemy import Engine, or_, select

from resources.ledger.engine import reading
from resources.ledger.model import Work
from resources.ledger.rows import as_work, select_work
from resources.ledger.schema import DEFERRED, FAILED, QUEUED, RUNNING, work


def attention(engine: Engine, kinds: tuple[str, ...]) -> list[Work]:
    """Oldest first, so that of two rows of a key the newer one is the last."""
    later = work.alias("later")
    has_later = (
        select(later.c.id)
        .where(later.c.kind == work.c.kind, later.c.key == work.c.key, later.c.id > work.c.id)
        .exists()
    )
    query = (
        select_work()
        .where(
            work.c.kind.in_(kinds),
            or_(work.c.status.in_([QUEUED, DEFERRED, RUNNING]), (work.c.status == FAILED) & ~has_later),
        )
        .order_by(work.c.id)
    )
    with reading(engine) as connection:
        return [as_work(row) for row in connection.execute(query)]

"""The rows a person may want to see: everything unfinished, and every failure that stands."""

from __future__ import annotations

from sqlalchemy import Engine, and_, or_

from resources.ledger.engine import reading
from resources.ledger.model import Work
from resources.ledger.rows import as_work, select_work
from resources.ledger.schema import ACTIVE, FAILED, work
from resources.ledger.standing import stands


def attention(engine: Engine, kinds: tuple[str, ...]) -> list[Work]:
    """Oldest first, so that of two rows of a key the newer one is the last."""
    query = (
        select_work()
        .where(
            work.c.kind.in_(kinds),
            or_(work.c.status.in_(ACTIVE), and_(work.c.status == FAILED, stands())),
        )
        .order_by(work.c.id)
    )
    with reading(engine) as connection:
        return [as_work(row) for row in connection.execute(query)]

"""What the ledger has to say of keys now: everything unfinished, and every refusal that stands."""

from __future__ import annotations

from sqlalchemy import Engine, and_, case, or_

from resources.database.engine import reading
from resources.ledger.model import Work
from resources.ledger.rows import as_work, select_work
from resources.ledger.schema import ACTIVE, CANCELLED, FAILED, work
from resources.ledger.standing import stands


def attention(engine: Engine, kinds: tuple[str, ...]) -> list[Work]:
    """Refusals (failed, called off) before what is under way, each oldest first."""
    active = work.c.status.in_(ACTIVE)
    query = (
        select_work()
        .where(
            work.c.kind.in_(kinds),
            or_(active, and_(work.c.status.in_([FAILED, CANCELLED]), stands())),
        )
        .order_by(case((active, 1), else_=0), work.c.id)
    )
    with reading(engine) as connection:
        return [as_work(row) for row in connection.execute(query)]

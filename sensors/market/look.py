"""One look at the market: observe, plan, enqueue, dispatch. No Dagster here.

The sensor, the schedule and the command all call `look`; they differ only in how they start what it asks.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from assets.market.market import Market
from domain.market.plan import FILL, REFRESH, Plan
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, REVISIONS
from resources.ledger.model import Dispatch, Work

DERIVED = (ADJUSTED_DAILY.table, COVERAGE.table, REVISIONS.table)
REFERENCES = 8
"""References per look; there are three at most, in January or December four."""


@dataclass(frozen=True)
class Start:
    """A run to start: these tables of one partition, under the id of their dispatch."""

    dispatch_id: str
    partition: str
    tables: tuple[str, ...]
    priority: int


@dataclass(frozen=True)
class Look:
    plan: Plan
    starts: tuple[Start, ...]


def look(market: Market, unfinished: Collection[str] = (), references: bool = True) -> Look:
    """`unfinished` names the dispatches whose run is queued or running: their work is not sent twice.

    Without `references` these are wished for, and left for another look to start.
    """
    plan = market.plan()
    live = {row.key for kind in (FILL, REFRESH) for row in market.ledger.find(kind, status=LIVE, limit=None)}
    market.ledger.enqueue([v.item() for v in plan.take(market.rules.limit, live.__contains__)])
    dispatches = [
        *(market.ledger.dispatch(REFRESH, limit=REFERENCES, busy=unfinished) if references else ()),
        *market.ledger.dispatch(FILL, limit=market.rules.limit, group=_day, order="newest", busy=unfinished),
    ]
    return Look(plan, tuple(_start(market, d) for d in dispatches))


LIVE = ("queued", "deferred", "running")


def _day(row: Work) -> str:
    return row.key.split(":", 1)[1]


def _start(market: Market, dispatch: Dispatch) -> Start:
    """A run of a day ends with what is derived from the day."""
    tables = [row.key.split(":", 1)[0] for row in dispatch.rows]
    if any(e.name in tables for e in market.catalogue.daily):
        tables += [name for name in DERIVED if name not in tables]
    return Start(
        dispatch_id=dispatch.id,
        partition=_day(dispatch.rows[0]),
        tables=tuple(tables),
        priority=max(row.priority for row in dispatch.rows),
    )

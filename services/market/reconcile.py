"""One look at the market: observe, plan, enqueue, dispatch. No Dagster here.

The sensor, the schedule and the command all call `look`; they differ only in how they start what it asks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial

from domain.market.derived import ADJUSTED_FROM, derivable
from domain.market.plan import FILL, REFRESH, Plan
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, DERIVED, REVISIONS
from domain.shared.state import PartitionState
from resources.ledger.attention import attention
from resources.ledger.model import Dispatch, Work
from services.market.service import MarketService

ANY_DAY = (COVERAGE.table, REVISIONS.table)
"""What can be derived of a day whatever is there of it."""
ATTEMPTS_OUTSIDE = 8
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
class Reconciliation:
    plan: Plan
    starts: tuple[Start, ...]


def reconcile(
    market: MarketService,
    unfinished: Collection[str] = (),
    references: bool = True,
    under_way: Collection[str] = (),
) -> Reconciliation:
    """`unfinished` names the dispatches whose run is queued or running: their work is not sent twice.
    `under_way` names the keys those runs care for, up to their end.

    Without `references` these are wished for, and left for another look to start.
    """
    plan = request(market, under_way)
    dispatches = [
        *(market.ledger.dispatch(REFRESH, limit=REFERENCES, busy=unfinished) if references else ()),
        *_dispatch_days(market, plan, unfinished, under_way),
    ]
    fills = {_day(d.rows[0]) for d in dispatches if d.rows[0].kind == FILL}
    states = market.states(ADJUSTED_FROM, sorted(fills)) if fills else {}
    waiting = {v.key for v in plan.verdicts if v.state == "unknown"}
    return Reconciliation(plan, tuple(_start(market, d, states, waiting) for d in dispatches))


def request(market: MarketService, under_way: Collection[str] = ()) -> Plan:
    """Plan, and ask the ledger for what is due and nobody is at.

    Between a run's commit and its record of it the plan sees a change nobody recorded, and between its
    steps a derived table that lags. Looked at again after the run, either is gone or real.
    """
    # Before the plan: what ends while it looks may have been seen half done.
    known = {row.key: row.status for row in attention(market.ledger.engine, (FILL, REFRESH))}
    at_work = {*under_way, *(key for key, status in known.items() if status == "running")}
    plan = market.plan()
    _leave_to_history(market, plan)
    chosen = plan.take(market.rules.limit, {*known, *at_work}.__contains__)
    market.ledger.enqueue([v.item() for v in chosen if v.key not in at_work])
    return plan


def _leave_to_history(market: MarketService, plan: Plan) -> None:
    """Work of days that nobody judges any more is given up after some attempts: the weekly look reports them.

    Inside the window a transient failure is never final; outside, it would be tried hourly for ever.
    """
    judged = {v.key for v in plan.verdicts}
    fetched = {e.name for e in market.catalogue.daily}
    # Without a calendar no day is judged at all, and none has left the window for that.
    oldest = min((v.partition for v in plan.verdicts if v.table in fetched), default="")
    old = [
        row
        for row in market.ledger.find(FILL, status="deferred", limit=None)
        if row.attempts >= ATTEMPTS_OUTSIDE and row.key not in judged and _day(row) < oldest
    ]
    market.ledger.withdraw(old, reason_code="outside_window")


def _dispatch_days(
    market: MarketService, plan: Plan, unfinished: Collection[str], under_way: Collection[str]
) -> list[Dispatch]:
    """Days that are judged, at most `limit` a look; older ones only until so many days are under way.

    Of the older ones, which a backfill could not do, thousands may be due at once, and each is a run. Those
    that are judged are few, and wait for nobody.
    """
    send = partial(market.ledger.dispatch, FILL, group=_day, order="newest", busy=unfinished)
    judged = {v.partition for v in plan.verdicts if v.table in {e.name for e in market.catalogue.daily}}
    sent = send(limit=market.rules.limit, only=lambda row: _day(row) in judged)
    room = market.rules.limit - len(_days_sent(market, unfinished, under_way))
    if room > 0:
        sent += send(limit=room, only=lambda row: _day(row) not in judged)
    return sent


def _days_sent(market: MarketService, unfinished: Collection[str], under_way: Collection[str]) -> set[str]:
    """The days whose run was asked for and has not ended: not those of a backfill or a click."""
    now = market.clock()
    tables = {
        *(e.name for e in market.catalogue.daily),
        *(t.table for t in DERIVED if t.partition_kind == "day"),
    }
    sent = {
        _day(row)
        for row in market.ledger.find(FILL, status=("queued", "running"), limit=None)
        if row.dispatch_id is not None
        and (row.status == "running" or row.not_before > now or row.dispatch_id in unfinished)
    }
    return sent.union(day for key in under_way for table, day in [key.split(":", 1)] if table in tables)


def _day(row: Work) -> str:
    return row.key.split(":", 1)[1]


def _start(
    market: MarketService,
    dispatch: Dispatch,
    states: Mapping[tuple[str, str], PartitionState],
    waiting: Collection[str],
) -> Start:
    """A run of a day ends with what can be derived from the day. `waiting` are keys of what cannot."""
    partition = _day(dispatch.rows[0])
    tables = [row.key.split(":", 1)[0] for row in dispatch.rows]
    if any(e.name in tables for e in market.catalogue.daily):
        adjusted = [ADJUSTED_DAILY.table] if derivable(tables, partition, states) else []
        tables += [
            name
            for name in (*adjusted, *ANY_DAY)
            if name not in tables and f"{name}:{partition}" not in waiting
        ]
    return Start(
        dispatch_id=dispatch.id,
        partition=partition,
        tables=tuple(tables),
        priority=max(row.priority for row in dispatch.rows),
    )

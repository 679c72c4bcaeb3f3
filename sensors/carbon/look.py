"""One look at carbon: observe, plan, enqueue, dispatch. No Dagster here.

The sensor and the command both call `look`; they differ only in how they start what it asks.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from assets.carbon.carbon import Carbon
from domain.carbon.plan import KINDS, Plan, year_of
from resources.ledger.attention import attention
from resources.ledger.model import Dispatch, Work

AT_ONCE = 100
"""Runs one look may ask for: a bound, far above what a year's change needs."""


@dataclass(frozen=True)
class Start:
    """A run to start: some partitions of one table, under the id of their dispatch."""

    dispatch_id: str
    table: str
    partitions: tuple[str, ...]
    pipelines: tuple[str, ...]
    priority: int

    @property
    def corners(self) -> tuple[str, str]:
        """The first and the last partition of the smallest range that holds them: types by name, then years."""
        names = sorted({p.rpartition("|")[0] for p in self.partitions})
        years = sorted({p.rpartition("|")[2] for p in self.partitions})
        first, last = (f"{n}|{y}".lstrip("|") for n, y in ((names[0], years[0]), (names[-1], years[-1])))
        return first, last


@dataclass(frozen=True)
class Look:
    plan: Plan
    starts: tuple[Start, ...]


def look(carbon: Carbon, unfinished: Collection[str] = ()) -> Look:
    """`unfinished` names the dispatches whose run is queued or running: their work is not sent twice."""
    plan = wish(carbon)
    dispatches = [
        dispatch
        for kind in KINDS
        for dispatch in carbon.ledger.dispatch(kind.name, limit=AT_ONCE, group=_together, busy=unfinished)
    ]
    chains = carbon.ledger.pipelines.of([row.id for d in dispatches for row in d.rows])
    return Look(plan, tuple(_start(d, chains) for d in dispatches))


def wish(carbon: Carbon) -> Plan:
    """Plan, and ask the ledger for what is due and nobody is at.

    Between a run's commit and its record of it the plan sees a change that nobody recorded: looked at again
    after the run, it is gone or real.
    """
    # Before the plan: what ends while it looks may have been seen half done.
    rows = attention(carbon.ledger.engine, tuple(kind.name for kind in KINDS))
    at_work = {row.key for row in rows if row.status == "running"}
    plan = carbon.plan()
    carbon.ledger.enqueue([v.item() for v in plan.due if v.key not in at_work])
    return plan


def _together(row: Work) -> str:
    """The partitions of a table and a year share a run."""
    table, partition = row.key.split(":", 1)
    return f"{table}:{year_of(partition)}"


def _start(dispatch: Dispatch, chains: dict[int, tuple[str, ...]]) -> Start:
    return Start(
        dispatch_id=dispatch.id,
        table=dispatch.rows[0].key.split(":", 1)[0],
        partitions=tuple(sorted(row.key.split(":", 1)[1] for row in dispatch.rows)),
        pipelines=tuple(sorted({p for row in dispatch.rows for p in chains.get(row.id, ())})),
        priority=max(row.priority for row in dispatch.rows),
    )

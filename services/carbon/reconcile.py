"""One look at carbon: observe, plan, enqueue, dispatch. No Dagster here.

The sensor and the command both call `look`; they differ only in how they start what it asks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from domain.carbon.jobs import KINDS, MODULE_RECALCULATION
from domain.carbon.observed import Observed
from domain.carbon.plan import Plan, year_of
from resources.ledger.attention import attention
from resources.ledger.model import Dispatch, EnqueueReport, Work
from resources.ledger.schema import RUNNING, WAITING
from resources.ledger.standing import SUPERSEDED
from services.carbon.requests import ask_for_types
from services.carbon.service import CarbonService

AT_ONCE = 100
"""Runs a sensor's look may ask for: a bound, far above what a year's change needs."""


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
        """The first and last partition of the smallest range that holds them: types by name, years."""
        names = sorted({p.rpartition("|")[0] for p in self.partitions})
        years = sorted({p.rpartition("|")[2] for p in self.partitions})
        first, last = (f"{n}|{y}".lstrip("|") for n, y in ((names[0], years[0]), (names[-1], years[-1])))
        return first, last


@dataclass(frozen=True)
class Reconciliation:
    """`left` are the keys that are due, and left to the next look: somebody is, or was, at them."""

    plan: Plan
    starts: tuple[Start, ...]
    left: frozenset[str] = frozenset()


def reconcile(
    carbon: CarbonService, unfinished: Collection[str] = (), *, at_once: int = AT_ONCE
) -> Reconciliation:
    """`unfinished` names the dispatches whose run is queued or running: their work is not sent twice.

    Between a run's commit and its record of it an observation sees a change that nobody recorded. So what was
    in somebody's hands before, after or between is left to the next look: it is gone then, or real.
    """
    ask_for_types(carbon)
    before = _rows(carbon)
    seen = carbon.observe()
    after = _rows(carbon)
    quiet = [row for key, row in after.items() if row == before.get(key) and row.status != RUNNING]
    at_work = {*before, *after}.difference(row.key for row in quiet)
    plan = _request(carbon, seen, at_work)
    _withdraw(carbon, plan, quiet, unfinished)
    dispatches: list[Dispatch] = []
    for kind in KINDS:
        if kind.name == MODULE_RECALCULATION:
            continue  # a look does it by itself
        room = at_once - len(dispatches)
        dispatches += carbon.ledger.dispatch(kind.name, limit=room, group=_together, busy=unfinished)
    chains = carbon.ledger.pipelines.of([row.id for d in dispatches for row in d.rows])
    left = frozenset(v.key for v in plan.due).intersection(at_work)
    return Reconciliation(plan, tuple(_start(d, chains) for d in dispatches), left)


def _rows(carbon: CarbonService) -> dict[str, Work]:
    """By key, the work that is not done; of several rows the newest."""
    return {row.key: row for row in attention(carbon.ledger.engine, tuple(kind.name for kind in KINDS))}


def _request(carbon: CarbonService, seen: Observed, at_work: Collection[str]) -> Plan:
    """Plan, and ask the ledger for what is due and nobody is at.

    What the ledger refuses will not be done, and so the reports of its year need not wait for it.
    """
    plan, refused = carbon.plan_of(seen), seen.refused
    while fresh := {row.key for row in _enqueue(carbon, plan, at_work).refused}.difference(refused):
        refused = fresh.union(refused)
        plan = carbon.plan_of(replace(seen, refused=refused))
    return plan


def _enqueue(carbon: CarbonService, plan: Plan, at_work: Collection[str]) -> EnqueueReport:
    return carbon.ledger.enqueue([v.item() for v in plan.due if v.key not in at_work])


def _withdraw(carbon: CarbonService, plan: Plan, rows: Iterable[Work], unfinished: Collection[str]) -> None:
    """Take back what was wished for and must not be done now: its year was locked since, more of what it is
    made from came, or nothing can be made of it any more. It is wished for again when its time comes. What a
    person asked for stays."""
    may_be_done = {v.key for v in plan.verdicts if v.state in ("healthy", "due")}
    gone = [
        row
        for row in rows
        if row.status in WAITING
        and row.key not in may_be_done
        and (row.dispatch_id is None or row.dispatch_id not in unfinished)
        and row.kind != MODULE_RECALCULATION
    ]
    asked = carbon.ledger.asked_for([row.id for row in gone])
    carbon.ledger.withdraw([row for row in gone if row.id not in asked], reason_code=SUPERSEDED)


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

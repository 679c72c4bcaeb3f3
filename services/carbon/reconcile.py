"""What carbon brings to a reconcile pass: its plan, what is withdrawn, and which partitions share a run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from domain.carbon.jobs import KINDS
from domain.carbon.observed import Observed
from domain.carbon.tables import FACTOR_VERSIONS, FACTORS, year_of
from domain.shared.verdict import Plan
from domain.shared.work import WAITING, Work
from resources.ledger.client import Ledger
from resources.ledger.model import Dispatch
from services.carbon.requests import request_types
from services.carbon.service import CarbonService
from services.reconcile import Reconciler, RunStart, Unfinished, start_of

WRITTEN_TOGETHER = {FACTORS.table: (FACTORS.table, FACTOR_VERSIONS.table)}


@dataclass(frozen=True)
class CarbonReconciler(Reconciler):
    carbon: CarbonService
    name: str = "carbon"
    kinds: tuple[str, ...] = tuple(kind.name for kind in KINDS)

    @property
    def ledger(self) -> Ledger:
        return self.carbon.ledger

    def observe(self) -> Observed:
        request_types(self.carbon)
        return self.carbon.observe()

    def plan_of(self, seen: Observed, refused: Collection[str]) -> Plan:
        return self.carbon.plan_of(replace(seen, refused=refused))

    def withdraw(self, plan: Plan, rows: Sequence[Work], unfinished: Unfinished) -> None:
        """Cancel what must not be done now: its year was locked since, more of what it is made from came, or
        nothing can be made of it any more. It is enqueued again when its time comes. What a person asked for
        stays."""
        may_be_done = {v.key for v in plan.verdicts if v.state == "healthy" or v.due}
        gone = [
            row
            for row in rows
            if row.status in WAITING
            and row.key not in may_be_done
            and row.dispatch_id not in unfinished.dispatches
            and not self.ledger.kind_named(row.kind).pulled  # a pass does it by itself
        ]
        asked = self.ledger.requested_by_person([row.id for row in gone]) if gone else ()
        if obsolete := [row for row in gone if row.id not in asked]:
            self.ledger.supersede(obsolete)

    def dispatch(self, plan: Plan, unfinished: Unfinished, at_once: int) -> list[Dispatch]:  # noqa: ARG002
        found: list[Dispatch] = []
        for kind in self.kinds:
            if not self.ledger.kind_named(kind).pulled:
                room = at_once - len(found)
                found += self.ledger.dispatch(
                    kind, limit=room, group=_run_of, busy=unfinished.dispatches, only=self._has_partition
                )
        return found

    def _has_partition(self, row: Work) -> bool:
        """Whether Dagster has it: a run of another one would fail the tick with all its runs."""
        return year_of(row.partition) in self.carbon.years

    def starts(self, plan: Plan, dispatches: Sequence[Dispatch]) -> list[RunStart]:  # noqa: ARG002
        pipelines = self.ledger.pipelines.of([row.id for d in dispatches for row in d.rows])
        tables = [d.rows[0].table for d in dispatches]
        return [
            start_of(self.namespace, one, WRITTEN_TOGETHER.get(table, (table,)), pipelines)
            for one, table in zip(dispatches, tables, strict=True)
        ]


def _run_of(row: Work) -> str:
    """The partitions of a table and a year share a run."""
    return f"{row.table}:{year_of(row.partition)}"

"""What the references bring to a reconcile pass: their plan, what is missing, and what is pulled."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from domain.references.jobs import HANDOFF, HANDOFFS, INGEST, SCRAPE
from domain.references.plan import Observed
from domain.references.tables import DOCUMENTS, REFERENCES
from domain.shared.verdict import Plan
from domain.shared.work import WAITING, Work
from resources.ledger.client import Ledger
from resources.ledger.model import Dispatch
from services.reconcile import Pull, Reconciler, Unfinished
from services.references.missing import without_documents, without_handoffs
from services.references.service import ReferencesService


@dataclass(frozen=True)
class ReferencesReconciler(Reconciler):
    references: ReferencesService
    name: str = "references"
    namespace: str = REFERENCES.namespace
    kinds: tuple[str, ...] = (SCRAPE,)

    @property
    def pulls(self) -> Sequence[Pull]:
        jobs = Pull(INGEST, DOCUMENTS.table, tuple(self.references.scrapers))
        if not self.references.store.handoffs.available:
            return (jobs,)
        return (Pull(HANDOFF, HANDOFFS), jobs)

    @property
    def ledger(self) -> Ledger:
        return self.references.ledger

    def observe(self) -> Observed:
        self.references.store.end_lost()
        return self.references.observe()

    def missing(self, seen: Observed) -> Mapping[str, Collection[str]]:
        lacking = {HANDOFF: without_handoffs(seen), INGEST: without_documents(self.references, seen)}
        return {kind: sources for kind, sources in lacking.items() if sources}

    def plan_of(self, seen: Observed, refused: Collection[str]) -> Plan:  # noqa: ARG002
        return self.references.plan_of(seen)

    def withdraw(self, plan: Plan, rows: Sequence[Work], unfinished: Unfinished) -> None:
        """Withdraw scrapes of sources that are not set any more, and those that somebody else did meanwhile,
        unless a person asked for them."""
        wanted = {v.key for v in plan.verdicts if v.due or v.blocked}
        waiting = [
            row
            for row in rows
            if row.status in WAITING
            and row.key not in wanted
            and row.dispatch_id not in unfinished.dispatches
        ]
        asked = self.ledger.requested_by_person([row.id for row in waiting]) if waiting else ()
        if obsolete := [r for r in waiting if r.id not in asked or not self._has_partition(r)]:
            self.ledger.supersede(obsolete)

    def dispatch(self, plan: Plan, unfinished: Unfinished, at_once: int) -> list[Dispatch]:  # noqa: ARG002
        return self.ledger.dispatch(
            SCRAPE, limit=at_once, busy=unfinished.dispatches, only=self._has_partition
        )

    def _has_partition(self, row: Work) -> bool:
        """Whether Dagster has it: a run of another one would fail the tick with all its runs."""
        return row.partition in self.references.scrapers

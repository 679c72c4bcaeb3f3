"""What the asset of documents does: ingests what is due of its partitions, each a source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from domain.references.jobs import INGEST
from domain.references.tables import DOCUMENTS
from services.partitions import Attempt, Notify, PartitionReport
from services.references.ingest import drain_jobs
from services.references.missing import count_without_document as count_lacking
from services.references.recording import state_in

if TYPE_CHECKING:
    from services.references.service import ReferencesService

RUN_SECONDS = 300.0
"""After so long a run that pulls ends, and the next pass starts another one if anything is left."""
WITHOUT_DOCUMENT = "without_document"


def ingest_sources(
    service: ReferencesService, partitions: Sequence[str], this: Attempt, report: Notify
) -> None:
    """Ingest what is due of these sources."""
    written: set[str] = set()

    def each(reports: Sequence[PartitionReport]) -> None:
        written.update(one.partition for one in reports)
        report(reports)

    try:
        drain_jobs(service, this.run_id, RUN_SECONDS, each, partitions)
    finally:
        report([_after(service, source, written=source in written) for source in partitions])


def _after(service: ReferencesService, source: str, *, written: bool) -> PartitionReport:
    state = state_in(service, DOCUMENTS, source)
    return PartitionReport(
        table=DOCUMENTS,
        partition=source,
        outcome="earlier" if written else "kept",
        version=state.version,
        before=state,
        metadata=_lacking(service, source) if state.version.readable else {},
    )


def _lacking(service: ReferencesService, source: str) -> dict[str, int]:
    """What the asset check says; nothing while the history of hand-offs is taken away."""
    if not service.store.handoffs.available:
        return {}
    return {WITHOUT_DOCUMENT: count_without_document(service, source)}


def count_without_document(service: ReferencesService, source: str) -> int:
    """Count the handed contents of a source that have neither a document nor a job to make one."""
    lacking = count_lacking(service, source)
    if not lacking:
        return 0
    active = service.ledger.backlog(INGEST).get(source)
    refused = sum(of.count for of in service.ledger.refusals(INGEST) if of.newest.tenant == source)
    return max(0, lacking - refused - (active.waiting + active.running if active else 0))

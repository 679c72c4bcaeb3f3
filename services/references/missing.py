"""Finds references without a hand-off, and without a document, and queues what is missing.

Nothing is lost with a process that dies between two steps: what should exist is compared with what exists.
While versions are those that were compared last, nothing is read.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from domain.references.handoffs import Content
from domain.references.jobs import INGEST
from domain.references.plan import Observed, SourceSeen
from domain.references.tables import DOCUMENTS, REFERENCES
from domain.shared.compute import packaged
from resources.database.statements import chunks
from services.references.handoff import BATCH, enqueue_handoffs, job_request
from services.references.service import ReferencesService


def queue_missing(service: ReferencesService, seen: Observed) -> bool:
    """Queue the hand-offs and the ingestion jobs that are missing; return whether anything was compared."""
    if not seen.handoffs_available:
        return False
    busy = service.ledger.backlog(INGEST)
    compared = False
    for source, one in seen.sources.items():
        if one.lacks_handoffs:
            queue_handoffs(service, source, one)
            compared = True
        elif source not in busy and one.documents_compared != one.ingested_version and one.is_readable:
            queue_documents(service, source, one)
            compared = True
    return compared


def queue_handoffs(service: ReferencesService, source: str, seen: SourceSeen) -> None:
    """Make the missing hand-offs of a source, and the missing work of those that there are."""
    for contents in _contents(service, "without_handoff", source):
        service.store.handoffs.put(contents, "")
    for rows in chunks(service.store.handoffs.unfinished(source), BATCH):
        enqueue_handoffs(service, rows)
    service.store.note_handed(source, str(seen.references.version))


def queue_documents(service: ReferencesService, source: str, seen: SourceSeen) -> None:
    """Queue ingestion for what has no document; for all of a source whose documents somebody changed."""
    again = not seen.documents.never_made and not seen.documents.untouched
    for contents in _contents(service, "handed_over" if again else "without_document", source):
        service.ledger.enqueue([job_request(one) for one in contents])
    service.store.note_ingested(source, seen.documents_compared)


def count_missing(service: ReferencesService, what: str, source: str) -> int:
    """Count the newest contents of a source `without_handoff`, or handed over and `without_document`."""
    return _found(service, what, source).num_rows


def _contents(service: ReferencesService, what: str, source: str) -> Iterator[list[Content]]:
    for batch in _found(service, what, source).to_batches(max_chunksize=BATCH):
        rows = (batch[name].to_pylist() for name in ("reference_id", "payload_hash", "scrape_run_id"))
        yield [Content(name, payload, source, scrape) for name, payload, scrape in zip(*rows, strict=True)]


def _found(service: ReferencesService, what: str, source: str) -> pa.Table:
    return service.lake.query(
        packaged(__file__, what),
        params={"source": source},
        extra={"handed": service.store.handoffs.contents(source)},
        partitions={REFERENCES.name: [source], DOCUMENTS.name: [source]},
    )

"""Finds references without a hand-off, and without a document, and queues what is missing.

Nothing is lost with a process that dies between two steps: what should exist is compared with what exists.
While versions are those that were compared last, nothing is read. A pass only sees that something may be
missing; the runs that pull the work look for it, page by page.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from domain.references.handoffs import Content
from domain.references.jobs import INGEST
from domain.references.plan import Observed, SourceSeen
from domain.references.tables import DOCUMENTS, REFERENCES
from domain.shared.packaged import packaged
from domain.shared.work import COMPLETED
from resources.database.statements import chunks
from services.references.handoff_work import BATCH, enqueue_handoffs, job_request
from services.references.service import ReferencesService

PAGE = 50_000
"""References that are read together."""
ALL, WITHOUT_DOCUMENT = "stored", "without_document"


def without_handoffs(seen: Observed) -> list[str]:
    """The sources of which hand-offs, or their work, may be missing. What a scrape that goes on just now has
    stored it hands over itself."""
    if not seen.handoffs_available:
        return []
    return [name for name, one in seen.sources.items() if one.may_lack_handoffs and not one.being_scraped]


def without_documents(service: ReferencesService, seen: Observed) -> list[str]:
    """The sources of which ingestion jobs may be missing; not while some of their jobs are under way."""
    if not seen.handoffs_available:
        return []
    lacking = [
        name
        for name, one in seen.sources.items()
        if one.is_readable and one.references.version.rows and not one.may_lack_handoffs
        if one.documents_compared != one.ingested_version
    ]
    busy = service.ledger.backlog(INGEST) if lacking else {}
    return [name for name in lacking if name not in busy]


def make_handoffs(service: ReferencesService, sources: Collection[str] | None = None) -> Iterator[int]:
    """Make the missing hand-offs, and the missing work of those that there are; yield after each batch."""
    seen = service.observe()
    for source in without_handoffs(seen):
        if sources is None or source in sources:
            yield from _make_handoffs(service, source, seen.sources[source])


def _make_handoffs(service: ReferencesService, source: str, seen: SourceSeen) -> Iterator[int]:
    store = service.store.handoffs
    if seen.lacks_handoffs:
        for contents in _pages(service, ALL, source):
            known = store.known(contents)
            if missing := [one for one in contents if one not in known]:
                enqueue_handoffs(service, store.put(missing, ""))
                yield len(missing)
        # Another sync may have noted a newer version meanwhile.
        service.store.note_handed(source, str(seen.references.version), before=seen.handed_version)
    if seen.handoffs_without_work:
        after = 0
        while rows := store.unfinished(source, after, BATCH):
            enqueue_handoffs(service, rows)
            after = rows[-1].id
            yield len(rows)


def queue_documents(service: ReferencesService, sources: Collection[str] | None = None) -> int:
    """Queue ingestion for what has no document, for all of a source whose documents somebody changed; return
    how many jobs are new."""
    seen, queued = service.observe(), 0
    for source in without_documents(service, seen):
        if sources is not None and source not in sources:
            continue
        one = seen.sources[source]
        again = not one.documents.never_made and not one.documents.untouched
        for contents in _pages(service, ALL if again else WITHOUT_DOCUMENT, source):
            report = service.ledger.enqueue([job_request(one) for one in _handed(service, contents)])
            queued += len(report.created)
        service.store.note_ingested(source, one.documents_compared)
    return queued


def count_without_handoff(service: ReferencesService, source: str) -> int:
    """Count the newest contents of a source without a hand-off."""
    pages = _pages(service, ALL, source)
    return sum(len(contents) - len(service.store.handoffs.known(contents)) for contents in pages)


def count_without_document(service: ReferencesService, source: str) -> int:
    """Count the newest contents of a source that were handed over and have no document."""
    return sum(len(_handed(service, contents)) for contents in _pages(service, WITHOUT_DOCUMENT, source))


def _handed(service: ReferencesService, contents: Collection[Content]) -> list[Content]:
    known = service.store.handoffs.known(contents)
    return [one for one in contents if one in known and known[one].status == COMPLETED]


def _pages(service: ReferencesService, what: str, source: str) -> Iterator[list[Content]]:
    """The newest contents of a source, all that are `stored` or those `without_document`, in batches."""
    names, after = ("reference_id", "payload_hash", "scrape_run_id"), ""
    while True:
        found = service.lake.query(
            packaged(__file__, what),
            params={"source": source, "after": after, "page": PAGE},
            partitions={REFERENCES.name: [source], DOCUMENTS.name: [source]},
        )
        rows = zip(*(found[name].to_pylist() for name in names), strict=True)
        contents = [Content(name, payload, source, scrape) for name, payload, scrape in rows]
        yield from map(list, chunks(contents, BATCH))
        if len(contents) < PAGE:
            return
        after = contents[-1].reference_id

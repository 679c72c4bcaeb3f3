"""The whole story of one reference: scraped, handed over, tried, ingested, with the reason of each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from domain.references.handoffs import Handoff
from domain.references.jobs import HANDOFF, INGEST, handoff_key, ingest_key
from domain.references.tables import DOCUMENTS, REFERENCES
from domain.shared.error import InvalidInput
from domain.shared.packaged import packaged
from domain.shared.work import RUNNING, Work
from services.references.service import ReferencesService

if TYPE_CHECKING:
    from services.references.store import ScrapeRun

SHOWN = 8
"""Characters of a hash that tell contents apart for a person."""


@dataclass(frozen=True)
class Step:
    """One thing that happened to a reference."""

    at: datetime
    what: str
    """scrape, hand-off, job or document."""
    event: str
    reason_code: str
    payload_hash: str
    text: str
    work_id: int | None = None
    scrape_run_id: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Story:
    reference_id: str
    source: str
    reference: dict[str, Any] | None
    """The newest content that is stored, without its payload; None if the lake has no such reference."""
    document: dict[str, Any] | None
    handoffs: tuple[Handoff, ...]
    """One for each content, oldest first."""
    steps: tuple[Step, ...]
    """Everything that happened, in the order of time."""
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def explain(service: ReferencesService, reference_id: str) -> Story:
    """Return the story of a reference, whose id is its source, a colon and its id at the source."""
    source = reference_id.partition(":")[0]
    reference, document = _stored(service, source, reference_id)
    store = service.store.handoffs
    available = store.available
    handoffs = tuple(store.of_reference(reference_id)) if available else ()
    if reference is None and not handoffs:
        raise InvalidInput(
            f"there is no reference {reference_id[:80]!r}",
            reason_code="unknown_reference",
            remedy="write it as source:id; `perennial references handoffs SOURCE` lists them",
        )
    steps = [*_scrapes(service, handoffs), *_attempts(service, handoffs), *_jobs(service, reference_id)]
    if not available and reference is not None:
        seen = reference["seen_at"], reference["payload_hash"], reference["scrape_run_id"]
        steps.insert(0, _first_sight(*seen))
    if document is not None:
        steps.append(_document_step(document))
    return Story(
        reference_id,
        source,
        reference,
        document,
        handoffs,
        tuple(sorted(steps, key=lambda step: step.at)),
        tuple(_notes(reference, document, handoffs, available=available)),
    )


def _stored(
    service: ReferencesService, source: str, reference_id: str
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    found = service.lake.query(
        packaged(__file__, "explained"),
        params={"source": source, "reference_id": reference_id},
        partitions={REFERENCES.name: [source], DOCUMENTS.name: [source]},
    ).to_pylist()
    if not found:
        return None, None
    [row] = found
    made = {name: row.pop(name) for name in ("document_hash", "document_title", "ingested_by", "ingested_at")}
    document = {
        "payload_hash": made["document_hash"],
        "title": made["document_title"],
        "ingested_by": made["ingested_by"],
        "ingested_at": made["ingested_at"],
    }
    return row, document if made["document_hash"] else None


def _scrapes(service: ReferencesService, handoffs: Sequence[Handoff]) -> Iterator[Step]:
    """Yield the first and the last scrape that met each content; those between said the same."""
    met = service.store.handoffs.scrapes([one.id for one in handoffs]) if handoffs else {}
    for handoff in handoffs:
        names = met[handoff.id]
        for name in dict.fromkeys([*names[:1], *names[-1:]]):
            if run := service.store.scrape_run(name):
                yield _scrape_step(handoff, run, "met" if name == names[0] else "met_again", len(names))
            elif name == names[0]:  # retention has deleted the run
                yield _first_sight(handoff.created_at, handoff.payload_hash, name)


def _scrape_step(handoff: Handoff, run: ScrapeRun, event: str, times: int) -> Step:
    content = handoff.payload_hash[:SHOWN]
    text = f"scraped ({run.requested_by}): content {content}"
    if event == "met_again":
        text += f" again, the newest of {times:,} scrapes that met it"
    return Step(
        run.started_at, "scrape", event, run.reason_code, handoff.payload_hash, text, scrape_run_id=run.id
    )


def _attempts(service: ReferencesService, handoffs: Sequence[Handoff]) -> Iterator[Step]:
    """Yield the history of the work that handed each content over."""
    hashes = {handoff_key(one.id): one.payload_hash for one in handoffs}
    for work in service.ledger.of_keys(HANDOFF, list(hashes)):
        yield from _events(service, work, "hand-off", hashes[work.key])


def _jobs(service: ReferencesService, reference_id: str) -> Iterator[Step]:
    """Yield the history of its ingestion jobs."""
    for work in service.ledger.of_keys(INGEST, [ingest_key(reference_id)]):
        yield from _events(service, work, "job", work.fingerprint)


def _events(service: ReferencesService, work: Work, what: str, payload_hash: str) -> Iterator[Step]:
    title = "ingestion job" if what == "job" else what
    for event in service.ledger.events(work.id):
        text = f"{title} {work.id} of content {payload_hash[:SHOWN]}: {event.status}"
        if event.attempt:
            text += f" (attempt {event.attempt})"
        began = (
            event.status == RUNNING
        )  # until it ends, a row has the reason and the error of the attempt before
        yield Step(
            event.at,
            what,
            event.event,
            "" if began else event.reason_code,
            payload_hash,
            text,
            work_id=work.id,
            error=None if began else event.error,
        )


def _first_sight(at: datetime, payload_hash: str, scrape_run_id: str) -> Step:
    text = f"scraped: content {payload_hash[:SHOWN]}"
    return Step(at, "scrape", "met", "", payload_hash, text, scrape_run_id=scrape_run_id)


def _document_step(document: dict[str, Any]) -> Step:
    payload_hash = document["payload_hash"]
    text = f"document made of content {payload_hash[:SHOWN]} by {document['ingested_by']}"
    return Step(document["ingested_at"], "document", "made", "", payload_hash, text)


def _notes(
    reference: dict[str, Any] | None,
    document: dict[str, Any] | None,
    handoffs: Sequence[Handoff],
    *,
    available: bool,
) -> Iterator[str]:
    if not available:
        yield "hand-off is unavailable: its history was taken away (`perennial migrate --up handoffs`)"
    if reference is None:
        yield "the lake has no such reference any more; its history is kept"
        return
    newest = reference["payload_hash"]
    if available and newest not in {one.payload_hash for one in handoffs}:
        yield "its newest content has no hand-off yet; the next pass makes it"
    if document is None:
        yield "it has no document yet"
    elif document["payload_hash"] != newest:
        yield "its document is of older content"

"""Syncs a source: scrapes it, stores what changed, and hands every new content over to ingestion.

Two syncs of one source may run at once: the lake merges under the table's lock, and a unique key decides who
hands a content over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from domain.references.content import canonical, canonical_json, payload_hash
from domain.references.handoffs import Content, HandoffCounts, count
from domain.references.tables import REFERENCES
from domain.shared.packaged import packaged
from domain.shared.table import ABSENT, Version
from domain.shared.work import FAILED
from resources.ledger.model import WORKER
from resources.ledger.outcome import cause_of
from resources.ledger.pipelines import new_pipeline_id
from resources.ledger.provenance import PartitionRecord
from resources.scraping.reference import NOTHING_READ, ScrapedReference
from services.references.handoff import hand_over_now
from services.references.handoff_work import BATCH, enqueue_handoffs
from services.references.recording import record_version, state_in
from services.references.service import ReferencesService

Guard = Callable[[], None]
SIGN_OF_LIFE = 15.0
"""Seconds between two."""


@dataclass
class SyncOutcome:
    """What a sync did. Of the references it touched, the four counts of hand-offs are the sum."""

    scrape_run_id: str
    source: str
    stored: int = 0
    """References that are new."""
    changed: int = 0
    unchanged: int = 0
    handoff_queued_count: int = 0
    """Accepted, waiting for a retry."""
    handoff_completed_count: int = 0
    """Its ingestion job was queued by this sync."""
    handoff_failed_count: int = 0
    handoff_skipped_count: int = 0
    """This content was active or ready already."""
    handoff_available: bool = True
    notes: list[str] = field(default_factory=list)

    @property
    def touched(self) -> int:
        return self.stored + self.changed + self.unchanged

    def add(self, counts: HandoffCounts) -> None:
        self.handoff_queued_count += counts.queued
        self.handoff_completed_count += counts.completed
        self.handoff_failed_count += counts.failed
        self.handoff_skipped_count += counts.skipped

    def as_json(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}


def sync(
    service: ReferencesService,
    source: str,
    *,
    by: str,
    full: bool = False,
    holder: str = "",
    guard: Guard | None = None,
    batch_size: int = BATCH,
) -> SyncOutcome:
    """Scrape a source and hand over what is new. `full` reads it whole, whatever is known of it; so is it
    read whose partition is not what was recorded of it."""
    scraper, number = service.scraper(source), new_pipeline_id()
    kept = service.store.begin(number, source, by)
    since = NOTHING_READ if full else kept.checkpoint
    outcome = SyncOutcome(number, source, handoff_available=service.store.handoffs.available)
    run = _Sync(service, outcome, holder or f"{WORKER}sync:{number}", guard)
    try:
        if not state_in(service, REFERENCES, source).untouched:
            full, since = True, NOTHING_READ
        scrape = scraper.fetch(since, full)
        for batch in _batches(scrape, run.show_life, batch_size):
            run.take(batch)
        if since == NOTHING_READ:
            run.record_all()
        then = scrape.checkpoint()
    except Exception as error:
        cause = cause_of(error)
        service.store.fail(number, run.outcome.as_json(), cause.reason_code, cause.error)
        if since == NOTHING_READ:
            service.store.forget_checkpoint(source)
        service.ledger.freshness.failed(freshness_of(source), error)
        raise
    run.outcome.notes += scrape.notes
    service.store.finish(number, source, run.outcome.as_json(), then)
    touched = run.outcome.touched
    service.ledger.freshness.succeeded(freshness_of(source), rows_latest=touched, rows_today=None)
    return run.outcome


def freshness_of(source: str) -> str:
    """The name of a source's freshness row."""
    return f"references.{source}"


@dataclass
class _Sync:
    """One sync: what it does to each batch of references."""

    service: ReferencesService
    outcome: SyncOutcome
    holder: str
    guard: Guard | None
    alive: float = field(default_factory=time.monotonic)
    """When it showed a sign of life last."""

    def show_life(self) -> None:
        """Show a sign of life, unless the last one is young."""
        if time.monotonic() - self.alive > SIGN_OF_LIFE:
            self.alive = time.monotonic()
            self.service.store.show_life(self._id, self.outcome.as_json())

    def take(self, batch: Sequence[ScrapedReference]) -> None:
        """Store what changed of a batch, and hand over what lacks a hand-off."""
        if not batch:
            return
        self.show_life()
        met, stored_by = self._beside_stored(self._rows(batch))
        new, same = pc.is_null(met["stored_hash"]), pc.equal(met["stored_hash"], met["payload_hash"])
        same = pc.fill_null(same, fill_value=False)
        # What a sync that began later stored is newer than what this one read.
        newer = pc.and_(pc.invert(same), pc.fill_null(pc.greater(stored_by, self._id), fill_value=False))
        write = pc.invert(pc.or_(same, newer))
        versions = self._store(met.filter(write)) if pc.any(write).as_py() else None
        self.outcome.stored += pc.sum(new).as_py() or 0
        self.outcome.unchanged += pc.sum(pc.or_(same, newer)).as_py() or 0
        self.outcome.changed = (
            self.outcome.changed + (pc.sum(write).as_py() or 0) - (pc.sum(new).as_py() or 0)
        )
        if not self.service.store.handoffs.available:
            self.outcome.handoff_available = False
            return
        ours = met.filter(pc.invert(newer))
        by = pc.if_else(same, stored_by, self._id).filter(pc.invert(newer))
        named = (ours["reference_id"].to_pylist(), ours["payload_hash"].to_pylist(), by.to_pylist())
        contents = [
            Content(name, payload, self.outcome.source, scrape)
            for name, payload, scrape in zip(*named, strict=True)
        ]
        self.outcome.add(self._hand_over(contents))
        self.outcome.handoff_skipped_count += met.num_rows - ours.num_rows
        if versions is not None:
            before, after = versions
            self.service.store.note_handed(self.outcome.source, str(after), before=str(before))

    def record_all(self) -> None:
        """Record the partition as it is, after the whole source was read."""
        version = self.service.lake.version(REFERENCES.name, self.outcome.source)
        if version.readable:
            self._record(version, None)

    @property
    def _id(self) -> str:
        return self.outcome.scrape_run_id

    def _rows(self, batch: Sequence[ScrapedReference]) -> pa.Table:
        """The references in canonical form, each once; of several of one id the last."""
        source, now = self.outcome.source, self.service.clock()
        rows = {one.id: _row(one, source) | {"scrape_run_id": self._id, "seen_at": now} for one in batch}
        return pa.Table.from_pylist(list(rows.values()), schema=REFERENCES.schema)

    def _beside_stored(self, rows: pa.Table) -> tuple[pa.Table, pa.ChunkedArray]:
        if self.service.lake.version(REFERENCES.name, self.outcome.source).corrupt:
            nothing = pa.chunked_array([pa.nulls(rows.num_rows, pa.string())])
            return rows.append_column("stored_hash", nothing), nothing
        met = self.service.rows(packaged(__file__, "met"), REFERENCES, [self.outcome.source], {"met": rows})
        return met, met["stored_by"]

    def _store(self, met: pa.Table) -> tuple[Version, Version]:
        """Write these references; return the partition's version just before and after."""
        before: list[Version] = []
        source, lake = self.outcome.source, self.service.lake
        rows = met.select(REFERENCES.schema.names).cast(REFERENCES.schema)

        def guard() -> None:
            if self.guard is not None:
                self.guard()
            before[:] = [lake.version(REFERENCES.name, source)]

        if lake.version(REFERENCES.name, source).corrupt:
            commit = lake.replace(REFERENCES.name, source, rows, guard=guard)
        else:
            commit = lake.merge(REFERENCES.name, rows, guard=guard)
        after = commit.versions[source]
        found = (before or [after])[0]
        self._vouch(found, after, commit.snapshot_id)
        return found, after

    def _vouch(self, before: Version, after: Version, snapshot_id: int | None) -> None:
        """Record what a commit made of a partition that was as it was recorded. What somebody else made of
        it is not ours to vouch for: it stays different, until its source was read whole."""
        known = state_in(self.service, REFERENCES, self.outcome.source).recorded
        if before == known or (known is None and before == ABSENT):
            self._record(after, snapshot_id)

    def _record(self, version: Version, snapshot_id: int | None) -> None:
        record_version(
            self.service,
            PartitionRecord(
                table_name=REFERENCES.name,
                partition=self.outcome.source,
                rows=version.rows,
                digest=version.digest,
                snapshot_id=snapshot_id,
                detail={"scrape_run_id": self._id},
                run_id=self.holder,
            ),
        )

    def _hand_over(self, contents: Sequence[Content]) -> HandoffCounts:
        """Hand over what is not handed over yet; count what became of all. What met its end before costs a
        look and a row that this scrape met it."""
        store = self.service.store.handoffs
        settled = {content: one for content, one in store.known(contents).items() if one.settled}
        store.note_met([one.id for one in settled.values()], self._id)
        failed = sum(one.status == FAILED for one in settled.values())
        before = HandoffCounts(failed=failed, skipped=len(settled) - failed)
        rows = store.put([one for one in contents if one not in settled], self._id)
        enqueue_handoffs(self.service, rows, self._id)
        ended = hand_over_now(self.service, rows, self.outcome.source, self.holder)
        # What others have in hand, or could not be queued, is counted as it is now.
        now = store.of_ids([row.id for row in rows if row.id not in ended])
        return before + count(
            (ended[row.id], True)
            if row.id in ended
            else (now[row.id], now[row.id].scrape_run_id == self._id)  # by a run that was quicker, for us
            for row in rows
        )


def _row(one: ScrapedReference, source: str) -> dict[str, Any]:
    return {
        "reference_id": f"{source}:{one.id}",
        "source": source,
        "title": canonical(one.title),
        "url": canonical(one.url),
        "published_at": one.published_at,
        "payload": canonical_json(one.payload),
        "payload_hash": payload_hash(one.title, one.url, one.published_at, one.payload),
    }


def _batches(
    references: Iterable[ScrapedReference], each: Callable[[], None], size: int
) -> Iterator[list[ScrapedReference]]:
    """The references in batches; if the source fails half-way, first what came before."""
    batch: list[ScrapedReference] = []
    try:
        for one in references:
            batch.append(one)
            each()
            if len(batch) == size:
                yield batch
                batch = []
    except Exception:
        yield batch
        raise
    yield batch

"""Ingestion: jobs become documents, in batches that share a commit.

A job is leased by the reference it is about, so no two jobs of one reference run at once, and the guard of
the commit refuses what lost its lease: an older job that ends late replaces nothing.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from domain.references.documents import Document, Reference, name_of
from domain.references.handoffs import SUPERSEDED_BY_NEWER
from domain.references.jobs import INGEST
from domain.references.tables import DOCUMENTS, REFERENCES
from domain.shared.error import PerennialError, TransientResourceError
from domain.shared.packaged import packaged
from domain.shared.work import Work
from services.partitions import Notify, PartitionReport
from services.references.missing import queue_documents
from services.references.recording import per_day, record_of, record_version, state_in

if TYPE_CHECKING:
    from resources.lake.write import Commit
    from resources.ledger.lease import Lease
    from services.references.service import ReferencesService

BATCH = 5_000
"""Jobs that are leased together, and whose documents share a commit."""
COMMIT_AFTER = 30.0
"""Seconds after which what a slow function has made is committed; the rest of the batch is given back."""
GONE = "reference_gone"

log = logging.getLogger("perennial.references")


@dataclass
class Drained:
    """What became of the jobs that a run leased."""

    made: int = 0
    superseded: int = 0
    gone: int = 0
    errors: list[Exception] = field(default_factory=list)


def drain_jobs(
    service: ReferencesService,
    run_id: str,
    seconds: float,
    report: Notify,
    sources: Collection[str] | None = None,
) -> Drained:
    """Ingest what is due, of all sources or of some, until nothing is or the time is over; queue what jobs
    are missing.

    A job that fails keeps no other from being done. If none succeeded, the first error is raised.
    """
    done, until = Drained(), time.monotonic() + seconds
    while time.monotonic() < until:
        with service.ledger.lease_due(INGEST, run_id, BATCH, tenants=sources) as lease:
            if lease.keys:
                _Batch(service, lease, run_id, report, done).run()
                continue
        if not queue_documents(service, sources):
            break
    for error in done.errors[:5]:
        log.warning("%s", error)
    if done.errors and not done.made:
        raise done.errors[0]
    return done


@dataclass
class _Batch:
    """Jobs of one lease."""

    service: ReferencesService
    lease: Lease
    run_id: str
    report: Notify
    done: Drained
    ready: dict[str, tuple[Reference, Document, Work]] = field(default_factory=dict)
    """By key, what was made."""

    def run(self) -> None:
        began = time.monotonic()
        for work, reference in self._current():
            if time.monotonic() - began < COMMIT_AFTER:
                self._make(work, reference)
            else:
                self.lease.release(work.key)
        if self.ready:
            self._commit(began)

    def _current(self) -> list[tuple[Work, Reference]]:
        """The jobs whose content is current; the others are answered for."""
        stored, found = self._stored(), []
        for work in self.lease.work.values():
            row = stored.get(work.partition)
            if row is None:
                self.lease.skip(work.key, GONE)
                self.done.gone += 1
            elif row.payload_hash != work.fingerprint:
                self.lease.complete(work.key, SUPERSEDED_BY_NEWER)
                self.done.superseded += 1
            else:
                found.append((work, row))
        return found

    def _stored(self) -> dict[str, Reference]:
        """The references of the jobs as they are stored now, with the scrape that brought them."""
        works = self.lease.work.values()
        jobs = pa.table({"source": [w.tenant for w in works], "reference_id": [w.partition for w in works]})
        sources = sorted({w.tenant for w in works})
        rows = self.service.rows(packaged(__file__, "referenced"), REFERENCES, sources, {"jobs": jobs})
        return {row["reference_id"]: _reference(row) for row in rows.to_pylist()}

    def _make(self, work: Work, reference: Reference) -> None:
        try:
            self.ready[work.key] = reference, self.service.ingest(reference), work
        except Exception as error:  # noqa: BLE001 - the ledger keeps it, and spaces the next attempts
            self.done.errors.append(error)
            if isinstance(error, PerennialError) and not isinstance(error, TransientResourceError):
                self.lease.fail(work.key, error)
            else:
                self.lease.defer(work.key, error)

    def _commit(self, began: float) -> None:
        service, sources = self.service, sorted({one.source for one, _, _ in self.ready.values()})
        before = {source: state_in(service, DOCUMENTS, source) for source in sources}
        commits = self._write([s for s in sources if before[s].version.corrupt])
        seconds = time.monotonic() - began
        reports = [
            PartitionReport(
                table=DOCUMENTS,
                partition=source,
                outcome="committed",
                version=commits[source].versions[source],
                before=before[source],
                snapshot_id=commits[source].snapshot_id,
                seconds=seconds,
                metadata=self._shown(source),
                **self._why(source),
            )
            for source in sources
        ]
        self.report(reports)
        for one in reports:
            record_version(service, record_of(one, self.run_id))
        for key in self.ready:
            self.lease.complete(key)
        self.done.made += len(self.ready)
        # Writes the answers: a killed run must not leave finished work behind as unfinished.
        self.lease.check()

    def _write(self, corrupt: Collection[str]) -> dict[str, Commit]:
        """Write what was made; return the commit of each source. Nothing can be merged into a corrupt
        partition: it is begun anew, and what else was in it is queued again."""
        lake, guard, rows = self.service.lake, self.lease.check, self._rows()
        commits = {
            source: lake.replace(
                DOCUMENTS.name, source, rows.filter(pc.field("source") == source), guard=guard
            )
            for source in corrupt
        }
        rest = rows.filter(~pc.field("source").isin(pa.array(corrupt, pa.string())))
        if rest.num_rows:
            merged = lake.merge(DOCUMENTS.name, rest, guard=guard)
            commits |= dict.fromkeys(merged.versions, merged)
        return commits

    def _rows(self) -> pa.Table:
        now, by = self.service.clock(), name_of(self.service.ingest)
        return pa.Table.from_pylist(
            [
                _row(reference, document, by) | {"ingested_at": now}
                for reference, document, _ in self.ready.values()
            ],
            schema=DOCUMENTS.schema,
        )

    def _why(self, source: str) -> dict[str, Any]:
        """Most jobs' reason and attempts."""
        works = [work for reference, _, work in self.ready.values() if reference.source == source]
        [(reason, _)] = Counter(work.reason_code for work in works).most_common(1)
        return {"reason": reason, "attempts": max(work.attempts for work in works)}

    def _shown(self, source: str) -> Mapping[str, Any]:
        return {
            "documents_made": sum(reference.source == source for reference, _, _ in self.ready.values()),
            "ingested_by": name_of(self.service.ingest),
            "documents_per_day": per_day(self.service, DOCUMENTS, source),
        }


def _reference(row: Mapping[str, Any]) -> Reference:
    return Reference(
        id=row["reference_id"],
        source=row["source"],
        title=row["title"],
        url=row["url"],
        published_at=row["published_at"],
        payload=orjson.loads(row["payload"]),
        payload_hash=row["payload_hash"],
        scrape_run_id=row["scrape_run_id"],
    )


def _row(reference: Reference, document: Document, by: str) -> dict[str, Any]:
    return {
        "reference_id": reference.id,
        "source": reference.source,
        "title": document.title,
        "text": document.text,
        "url": document.url or reference.url,
        "published_at": document.published_at or reference.published_at,
        "payload_hash": reference.payload_hash,
        "scrape_run_id": reference.scrape_run_id,
        "ingested_by": by,
    }

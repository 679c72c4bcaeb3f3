"""Hands contents over to ingestion, in batches: each content once, however often it is tried.

A hand-off has its final status before its work item is completed. If the process dies between the two, the
next holder finds it final and only completes the work.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from domain.references.handoffs import (
    ALREADY_READY,
    GONE,
    JOB_ACTIVE,
    JOB_QUEUED,
    SUPERSEDED_BY_NEWER,
    Content,
    Ended,
    Handoff,
    handed,
    refused,
)
from domain.references.jobs import HANDOFF, handoff_id, handoff_key, ingest_key
from domain.references.tables import DOCUMENTS
from domain.shared.error import PermanentRunnerError
from domain.shared.packaged import packaged
from domain.shared.work import FAILED, QUEUED, Work
from services.references.handoff_work import BATCH, job_request
from services.references.missing import make_handoffs
from services.references.service import Outcomes, ReferencesService

if TYPE_CHECKING:
    from resources.ledger.lease import Lease

log = logging.getLogger(__name__)

Counts = Mapping[str, int]
"""By reason code, how many attempts at hand-offs ended so."""


@dataclass(frozen=True)
class JobQueue:
    """The default target: an ingestion job is a work item of our own ledger."""

    service: ReferencesService

    def queue(self, contents: Sequence[Content]) -> Outcomes:
        active = self.service.store.handoffs.active_jobs([one.reference_id for one in contents])
        # While other content of a reference is being ingested, its document may be replaced any moment.
        ready = self._ready([one for one in contents if one.reference_id not in active])
        wanted = {ingest_key(one.reference_id): one for one in contents if one.reference_id not in ready}
        report = self.service.ledger.enqueue([job_request(one) for one in wanted.values()])
        found: dict[Content, str | Exception] = {
            one: ALREADY_READY for one in contents if one.reference_id in ready
        }
        found |= {wanted[row.key]: JOB_QUEUED for row in (*report.created, *report.updated)}
        found |= {wanted[row.key]: JOB_ACTIVE for row in report.absorbed}
        return found | {wanted[row.key]: _job_failed(row) for row in report.refused}

    def _ready(self, contents: Sequence[Content]) -> frozenset[str]:
        sources = sorted({one.source for one in contents})
        versions = self.service.lake.versions(DOCUMENTS.name, sources)
        # Corrupt documents are made again.
        contents = [one for one in contents if not versions[one.source].corrupt]
        if not contents:
            return frozenset()
        names = ("reference_id", "payload_hash", "source")
        rows = pa.table({name: [getattr(one, name) for one in contents] for name in names})
        sources = sorted({one.source for one in contents})
        found = self.service.rows(packaged(__file__, "ready"), DOCUMENTS, sources, {"contents": rows})
        return frozenset(found["reference_id"].to_pylist())


def _job_failed(job: Work) -> PermanentRunnerError:
    return PermanentRunnerError(
        f"the ingestion job of this content (work {job.id}) is {job.status}",
        remedy=f"`perennial work retry {job.id}`",
    )


def hand_over(service: ReferencesService, lease: Lease) -> dict[int, Ended]:
    """Hand over what is leased; return, by hand-off, how each attempt ended."""
    works = {handoff_id(key): work for key, work in lease.work.items()}
    rows = service.store.handoffs.of_ids(works)
    todo = {n: row for n, row in rows.items() if not (row.final and row.work_id == works[n].id)}
    ended = _attempt(service, lease, works, todo)
    for number, work in works.items():
        if number in ended:
            _answer(lease, work, ended[number])
        elif number in rows:
            _answer(lease, work, _as_before(rows[number]))
        else:
            lease.skip(work.key, GONE)  # its history was taken away since
    return ended


def _attempt(
    service: ReferencesService, lease: Lease, works: Mapping[int, Work], todo: Mapping[int, Handoff]
) -> dict[int, Ended]:
    if not todo:
        return {}
    store = service.store.handoffs
    store.begin({n: works[n] for n in todo})
    superseded = store.superseded(todo)
    contents = {row.content: n for n, row in todo.items() if n not in superseded}
    outcomes = _queue(service, list(contents))
    ended = dict.fromkeys(superseded, handed(SUPERSEDED_BY_NEWER))
    for content, number in contents.items():
        outcome = outcomes[content]
        work = works[number]
        ended[number] = (
            handed(outcome)
            if isinstance(outcome, str)
            else refused(outcome, work.attempts, work.max_attempts)
        )
    # A holder that was given up writes nothing: another one has these by now.
    lease.check()
    store.end(ended, works)
    return ended


def _queue(service: ReferencesService, contents: Sequence[Content]) -> Outcomes:
    """What the target made of the contents; if it failed as a whole, its error for each."""
    if not contents:
        return {}
    try:
        return (service.target or JobQueue(service)).queue(contents)
    except Exception as error:
        log.warning("handing over %d contents failed", len(contents), exc_info=True)
        return dict.fromkeys(contents, error)


def _answer(lease: Lease, work: Work, ended: Ended) -> None:
    if ended.status == FAILED:
        lease.fail(work.key, ended.error or ended.reason_code, reason_code=ended.reason_code)
    elif ended.status == QUEUED:
        lease.defer(work.key, ended.error, reason_code=ended.reason_code)
    else:
        lease.complete(work.key, ended.reason_code)


def _as_before(row: Handoff) -> Ended:
    """How the attempt ended whose holder died before it answered for the work."""
    error = None if row.error is None else PermanentRunnerError(row.error)
    return Ended(row.status, row.reason_code, error)


def drain_handoffs(
    service: ReferencesService,
    run_id: str,
    seconds: float,
    report: Callable[[Counts], None] = lambda _: None,
    sources: Collection[str] | None = None,
) -> Counter[str]:
    """Make what hand-offs are missing and hand over whatever is due, batch by batch, for at most so long;
    `report` gets the counts of each."""
    until, total = time.monotonic() + seconds, Counter[str]()
    missing = make_handoffs(service, sources)
    while time.monotonic() < until:
        made = next(missing, None)
        with service.ledger.lease_due(HANDOFF, run_id, BATCH, tenants=sources) as lease:
            if not lease.keys:
                if made is None:
                    break
                continue
            counts = Counter(one.reason_code for one in hand_over(service, lease).values())
        report(counts)
        total += counts
    return total


def hand_over_now(
    service: ReferencesService, handoffs: Collection[Handoff], source: str, holder: str
) -> dict[int, Ended]:
    """Hand over these, as far as they are due and nobody else has them; return how the last attempt at each
    ended."""
    keys = [handoff_key(one.id) for one in handoffs if not one.final]
    ended: dict[int, Ended] = {}
    while keys:
        lease = service.ledger.lease_due(HANDOFF, holder, len(keys), tenants=[source], keys=keys)
        with lease:
            if not lease.keys:
                break
            found = hand_over(service, lease)
        ended |= found
        keys = [handoff_key(n) for n, one in found.items() if one.status == QUEUED]  # due at once, or later
    return ended

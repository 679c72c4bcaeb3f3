"""The hand-off of one content to ingestion, as values: its statuses, its reasons, and how one attempt ends.

`completed` means that an ingestion job for the content exists; the job has its own life as a work item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from domain.shared.error import PerennialError, PermanentRunnerError, TransientResourceError
from domain.shared.work import COMPLETED, FAILED, QUEUED, RUNNING

Status = Literal["queued", "running", "completed", "failed"]
STATUSES: tuple[Status, ...] = (QUEUED, RUNNING, COMPLETED, FAILED)  # type: ignore[assignment]
FINAL = (COMPLETED, FAILED)

QUEUED_FROM_SCRAPE = "queued_from_scrape"
JOB_QUEUED = "ingestion_job_queued"
JOB_ACTIVE = "ingestion_job_already_active"
ALREADY_READY = "content_already_ready"
SUPERSEDED_BY_NEWER = "superseded_by_newer"
TRANSIENT = "transient_error"
PERMANENT = "permanent_error"
EXHAUSTED = "retry_exhausted"
GONE = "handoff_gone"
"""The reason code of work whose hand-off is not known any more."""


@dataclass(frozen=True, slots=True)
class Content:
    """One content of one reference."""

    reference_id: str
    payload_hash: str
    source: str
    scrape_run_id: str
    """The scrape run that stored or queued this content last. Later runs have greater ids."""


@dataclass(frozen=True, slots=True)
class Handoff:
    """One row of the hand-offs: one content of one reference, once for all."""

    id: int
    reference_id: str
    payload_hash: str
    source: str
    status: Status
    reason_code: str
    attempts: int
    work_id: int | None
    error: str | None
    scrape_run_id: str
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None

    @property
    def final(self) -> bool:
        return self.status in FINAL

    @property
    def content(self) -> Content:
        return Content(self.reference_id, self.payload_hash, self.source, self.scrape_run_id)


@dataclass(frozen=True, slots=True)
class Ended:
    """How one attempt at a hand-off ended. `error` is set unless it is completed."""

    status: Status
    reason_code: str
    error: Exception | None = None


def handed(reason_code: str) -> Ended:
    return Ended("completed", reason_code)


def refused(error: Exception, attempts: int, most: int | None) -> Ended:
    """Return how an attempt ends that raised: transient errors are tried again, others are final at once.

    An unexpected exception is tried again too: it says nothing about the content.
    """
    if isinstance(error, PerennialError) and not isinstance(error, TransientResourceError):
        return Ended("failed", PERMANENT, error)
    if most is not None and attempts >= most:
        return Ended("failed", EXHAUSTED, error)
    return Ended("queued", TRANSIENT, error)


def given_up(work_id: int, status: str) -> Ended:
    """Return the end of a hand-off whose work was given up or cancelled."""
    return Ended("failed", PERMANENT, PermanentRunnerError(f"its work {work_id} is {status}"))


@dataclass(frozen=True)
class HandoffCounts:
    """What became of the references that a sync touched. The four sum to their number."""

    queued: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: HandoffCounts) -> HandoffCounts:
        return HandoffCounts(
            self.queued + other.queued,
            self.completed + other.completed,
            self.failed + other.failed,
            self.skipped + other.skipped,
        )

    @property
    def total(self) -> int:
        return self.queued + self.completed + self.failed + self.skipped


def count(ends: Iterable[tuple[Ended | Handoff, bool]]) -> HandoffCounts:
    """Count hand-offs as they ended or are; each with whether this sync tried it."""
    found = Counter(_counted(one.status, one.reason_code, ours=ours) for one, ours in ends)
    return HandoffCounts(found["queued"], found["completed"], found["failed"], found["skipped"])


def _counted(status: Status, reason_code: str, *, ours: bool) -> str:
    if status == COMPLETED:
        return "completed" if ours and reason_code == JOB_QUEUED else "skipped"
    return "failed" if status == FAILED else "queued"

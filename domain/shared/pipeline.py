"""The status of a pipeline, derived from its work items: nothing of it is kept anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from domain.shared.work import ACTIVE, CANCELLED, COMPLETED, FAILED, QUEUED, SKIPPED, SUPERSEDED, Work

Status = Literal["NOT_STARTED", "RUNNING", "SUCCESS", "PARTIAL", "FAILED"]
"""NOT_STARTED  nothing was begun
RUNNING      some of it waits, runs or was put off
SUCCESS      all is done
PARTIAL      it was begun well, and something of it failed, was called off, or is kept back
FAILED       nothing came of its beginning
"""
ENDED: tuple[Status, ...] = ("SUCCESS", "PARTIAL", "FAILED")
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""The digits of a ULID."""


@dataclass(frozen=True)
class Span:
    """The time from the first start to the last end of some work; without an end while any of it goes on."""

    status: Status
    started: datetime | None = None
    finished: datetime | None = None

    @property
    def duration(self) -> timedelta | None:
        return self.finished - self.started if self.started and self.finished else None


def status_of(counts: Mapping[str, int], *, begun: bool) -> Status:
    """Return the status by how many of the work items that count have each status."""
    found = {status for status, number in counts.items() if number}
    if found <= {QUEUED} and not begun:
        return "NOT_STARTED"
    if found.intersection(ACTIVE):
        return "RUNNING"
    if not found & {FAILED, CANCELLED}:
        return "SUCCESS"
    return "PARTIAL" if found & {COMPLETED, SKIPPED} else "FAILED"


def span(rows: Sequence[Work]) -> Span:
    counting = newest_of_keys(rows)
    begun = any(row.started_at for row in counting)
    status = status_of(Counter(row.status for row in counting), begun=begun)
    started = min((r.started_at for r in rows if r.started_at), default=None)
    ends = [r.finished_at for r in counting if r.finished_at]
    return Span(status, started, max(ends, default=None) if status in ENDED else None)


def newest_of_keys(rows: Iterable[Work]) -> list[Work]:
    """Return the newest work item of each key, which has tried again what failed before."""
    needed = [row for row in rows if row.status != SUPERSEDED]
    # Sorting keeps the order of equals: of two rows of one moment the later one counts.
    return list({(r.kind, r.key): r for r in sorted(needed, key=lambda r: r.created_at)}.values())


def created_at(pipeline_id: str) -> datetime | None:
    """Return the moment that a ULID names, None where the id is none."""
    if len(pipeline_id) != 26 or pipeline_id[0] > "7" or not set(pipeline_id).issubset(ALPHABET):
        return None
    number = 0
    for digit in pipeline_id[:10]:
        number = number << 5 | ALPHABET.index(digit)
    # Ids of the year 10889 are valid ULIDs, and no moments to Python.
    return datetime.fromtimestamp(number / 1000, UTC) if number < 253_402_300_800_000 else None

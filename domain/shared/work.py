"""Work as values: its kinds, what is requested, and one row of the ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from domain.shared.backoff import Backoff
from domain.shared.error import PerennialError

QUEUED = "queued"
RUNNING = "running"
DEFERRED = "deferred"
COMPLETED = "completed"
FAILED = "failed"
SKIPPED = "skipped"
CANCELLED = "cancelled"
SUPERSEDED = "superseded"

WAITING = (QUEUED, DEFERRED)
ACTIVE = (*WAITING, RUNNING)
FINISHED = (COMPLETED, FAILED, SKIPPED, CANCELLED, SUPERSEDED)
STATUSES = (*ACTIVE, *FINISHED)

UNCLASSIFIED = Backoff(base=timedelta(seconds=5), factor=5, cap=timedelta(seconds=300), max_attempts=3)
"""For exceptions nobody classified: few attempts, then a person decides."""

DEATHS = Backoff(base=timedelta(minutes=1), factor=5, cap=timedelta(hours=1), max_attempts=10)
"""For work whose holder died without an answer, of every kind: counted from its last sign of life."""

RECURRENCE = Backoff(base=timedelta(seconds=30), factor=2, cap=timedelta(hours=1))
"""For work that ended well and yet is requested again at once for the very same reason."""


Gate = Callable[[Any, Collection[str]], Mapping[str, PerennialError]]
"""Called with a connection and keys, in the transaction that claims them: the keys that nobody may work on
now, each with the error that says why."""


@dataclass(frozen=True)
class Kind:
    """One kind of work, e.g. `market.fill`.

    `transient` spaces the attempts after a TransientResourceError; its `max_attempts` None means the
    work is never given up. `recurrence_backoff` spaces consecutive generations of a key that each ended well
    and yet left the plan wanting more: the first recurrence is free, the tenth is not. `gate` is a domain's
    veto: keys it names are not claimed, and their work ends as skipped. Work of a `pulled` kind is leased by
    runs that take whatever is due; all other runs are dispatched for named keys.
    """

    name: str
    transient: Backoff
    unclassified: Backoff = UNCLASSIFIED
    recurrence_backoff: Backoff = RECURRENCE
    gate: Gate | None = None
    pulled: bool = False


@dataclass(frozen=True)
class WorkRequest:
    """This `key` of this `kind` is to be done, for the reason that the fingerprint stands for."""

    kind: str
    key: str
    fingerprint: str
    reason_code: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    tenant: str = "default"
    priority: int = 0
    not_before: datetime | None = None
    parent_id: int | None = None
    once: bool = False
    """Whether the key is an event, done once for all; until retention deletes its row."""
    pipelines: tuple[str, ...] = ()
    """The pipelines that this work belongs to; one work item may complete several."""


def split_key(key: str) -> tuple[str, str]:
    """Return the table and the partition of a key."""
    table, _, partition = key.partition(":")
    return table, partition


@dataclass(frozen=True, slots=True)
class Work:
    """One generation of one work item: a row of table `work`. A new one has the values given here.

    `attempts` counts claims by distinct runs, `crash_count` those of them that ended with an exception nobody
    classified. `deaths` counts claims in a row whose holder died without an answer; they are no attempts.
    `dispatches` counts the runs started since the last claim, and `recurrence` the generations in a row that
    ended well and yet were requested again. `not_before_fixed`: the source or the request named that moment.
    """

    id: int
    kind: str
    key: str
    status: str
    reason_code: str
    fingerprint: str
    params: Mapping[str, Any]
    tenant: str
    priority: int
    once: bool
    parent_id: int | None
    max_attempts: int | None
    not_before: datetime
    created_at: datetime
    updated_at: datetime
    error_kind: str | None = None
    error: str | None = None
    attempts: int = 0
    crash_count: int = 0
    dispatches: int = 0
    dispatch_id: str | None = None
    recurrence: int = 0
    run_id: str | None = None
    lease_until: datetime | None = None
    fence: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    deaths: int = 0
    not_before_fixed: bool = False

    @property
    def table(self) -> str:
        return split_key(self.key)[0]

    @property
    def partition(self) -> str:
        return split_key(self.key)[1]


@dataclass(frozen=True)
class Refusals:
    """Work of a tenant that failed, or was cancelled, for one reason; it is not tried again."""

    newest: Work
    count: int = 1
    since: datetime | None = None

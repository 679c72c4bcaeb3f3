"""What the ledger gives to its callers: rows as values, reports, and the errors only a ledger can raise."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime

from domain.shared.error import TransientResourceError
from domain.shared.work import Work

WORKER = "worker:"
"""The prefix of holders that are processes and no Dagster runs: only their lease shows that they live."""

RETRIED = "retried"
"""The reason code of work that a person retried."""
REQUESTED = "requested"
"""The reason code of work that a person requested, though no plan wants it."""
BY_A_PERSON = (RETRIED, REQUESTED)
DONE_MEANWHILE = "done_meanwhile"
"""The reason code of work whose result was there already."""


@dataclass(frozen=True, slots=True)
class Event:
    """One transition of one row, as table `work_event` keeps it."""

    id: int
    work_id: int
    at: datetime
    event: str
    status: str
    attempt: int
    run_id: str | None
    reason_code: str
    error_kind: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class EnqueueReport:
    """What became of each request. Rows are as they are after the call.

    created   a new generation waits
    updated   a waiting row now carries the newer request
    absorbed  nothing to write: the same request waits or runs already, or its event was done once for all
    refused   this very fingerprint failed or was cancelled, and nothing was tried since: a person decides
    """

    created: list[Work] = field(default_factory=list)
    updated: list[Work] = field(default_factory=list)
    absorbed: list[Work] = field(default_factory=list)
    refused: list[Work] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        return {one.name: len(getattr(self, one.name)) for one in fields(self)}


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Rows that travel in one run. `id` is the run key; it is spent with the run, whatever becomes of it."""

    id: str
    group: str
    rows: tuple[Work, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(row.key for row in self.rows)


@dataclass(frozen=True, slots=True)
class Backlog:
    """One tenant's unfinished work of one kind. `waiting` includes what is due; `oldest` waits longest."""

    due: int = 0
    waiting: int = 0
    running: int = 0
    oldest: datetime | None = None


class LeaseLost(TransientResourceError):
    """Another holder decides about this work now (swept, cancelled, claimed again): write nothing."""

    reason_code = "lease_lost"


class LeasedElsewhere(TransientResourceError):
    """Another run has some of the keys; the rest is done."""

    reason_code = "leased_elsewhere"
    remedy = "wait for that run; if it is dead, the sweep frees the work when its lease ends"

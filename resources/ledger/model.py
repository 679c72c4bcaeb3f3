"""What the ledger gives to its callers: rows as values, reports, and the errors only a ledger can raise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from domain.shared.error import TransientResourceError

WORKER = "worker:"
"""A holder so prefixed is a process and no Dagster run: only its lease says whether it lives."""


@dataclass(frozen=True, slots=True)
class Work:
    """One generation of one piece of work: the columns of table `work`, in their order.

    `attempts` counts claims by distinct runs, `strikes` those of them that ended in a way nobody
    classified (a bug, a killed process), `dispatches` the runs asked for since the last claim, and
    `repeats` the generations in a row that ended well and yet were wanted again.
    """

    id: int
    kind: str
    key: str
    fingerprint: str
    params: Mapping[str, Any]
    tenant: str
    priority: int
    once: bool
    parent_id: int | None
    status: str
    reason_code: str
    error_kind: str | None
    error: str | None
    attempts: int
    strikes: int
    max_attempts: int | None
    dispatches: int
    dispatch_id: str | None
    repeats: int
    not_before: datetime
    run_id: str | None
    lease_until: datetime | None
    fence: int
    created_at: datetime
    started_at: datetime | None
    updated_at: datetime
    finished_at: datetime | None


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
    """What became of each wish. Rows are as they stand after the call.

    created   a new generation waits
    updated   a waiting row now carries the newer wish
    absorbed  nothing to write: the same wish waits or runs already, or its event was done once for all
    refused   this very fingerprint failed or was given up, and nothing was tried since: a person decides
    """

    created: list[Work] = field(default_factory=list)
    updated: list[Work] = field(default_factory=list)
    absorbed: list[Work] = field(default_factory=list)
    refused: list[Work] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        return {
            "created": len(self.created),
            "updated": len(self.updated),
            "absorbed": len(self.absorbed),
            "refused": len(self.refused),
        }


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
class Swept:
    """An orphan taken from a dead holder. `work` is the row as it stands now, `run_id` who had it."""

    work: Work
    run_id: str
    why: Literal["run_finished", "lease_expired"]


class LeaseLost(TransientResourceError):
    """Somebody else decides about this work now (swept, cancelled, claimed again): write nothing."""

    reason_code = "lease_lost"


class HeldElsewhere(TransientResourceError):
    """Some of the asked keys are being done by another run; the rest is done."""

    reason_code = "held_elsewhere"

"""Health as a value: what is not healthy, why, since when, what happens next, what a person can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from domain.shared.error import PerennialError

Health = Literal["healing", "explained", "stale", "broken"]
"""healing    work waits or runs and will be tried again by itself
explained  not as expected, and the reason is known; nothing to do
stale      older than it should be
broken     a person has to do something
"""

ORDER: Mapping[Health, int] = {"broken": 0, "stale": 1, "healing": 2, "explained": 3}


@dataclass(frozen=True)
class Finding:
    domain: str
    subject: str
    health: Health
    reason_code: str
    reason: str
    since: datetime | None = None
    next_attempt: datetime | None = None
    action: str = "nothing"
    work_id: int | None = None
    attempts: int | None = None
    """So far, of the work in the ledger."""
    caused_by: str | None = None
    """The subject of the finding that causes this one."""

    @property
    def rank(self) -> tuple[int, bool, str]:
        return (ORDER[self.health], self.caused_by is not None, self.subject)

    def as_json(self) -> dict[str, Any]:
        return {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in asdict(self).items()
        }


def unobserved(domain: str, subject: str, error: PerennialError) -> Finding:
    """The finding about something that could not be observed."""
    action = error.remedy or "see `perennial doctor`"
    return Finding(domain, subject, "broken", error.reason_code, error.message, action=action)


def summary(found: Sequence[Finding]) -> str:
    """Return one sentence about all findings."""
    if not found:
        return "healthy: nothing is missing, nothing waits, every source answered"
    counts = {kind: sum(f.health == kind for f in found) for kind in ORDER}
    counted = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    if counts["broken"] or counts["stale"]:
        return f"{counted}: a person is needed"
    coming = sorted(f.next_attempt for f in found if f.next_attempt is not None)
    return f"{counted}: nobody is needed" + (
        f", next attempt {coming[0]:%Y-%m-%d %H:%M} UTC" if coming else ""
    )


class WorkRow(Protocol):
    """What health needs to know of a work row."""

    @property
    def id(self) -> int: ...
    @property
    def key(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def reason_code(self) -> str | None: ...
    @property
    def error(self) -> str | None: ...
    @property
    def attempts(self) -> int: ...
    @property
    def not_before(self) -> datetime | None: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def finished_at(self) -> datetime | None: ...
    @property
    def lease_until(self) -> datetime | None: ...
    @property
    def run_id(self) -> str | None: ...

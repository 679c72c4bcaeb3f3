"""Health as a value: what is not healthy, why, since when, what happens next, what a person can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal

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
    run_id: str | None = None
    """The run that does its work now."""
    needs_run: bool = False
    """Whether a daemon does what is needed; without one a person runs a command."""

    @property
    def rank(self) -> tuple[int, bool, str]:
        return (ORDER[self.health], self.caused_by is not None, self.subject)

    def as_json(self) -> dict[str, Any]:
        return {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in asdict(self).items()
            if name != "needs_run"  # said by `action`
        }


@dataclass(frozen=True, slots=True)
class SourceFreshness:
    """When a source last answered and last failed.

    `last_error` belongs to `last_failure` and stays after later successes. `rows_today` and `rows_latest` are
    those of the last success.
    """

    source: str
    last_success: datetime | None = None
    last_failure: datetime | None = None
    last_error: str | None = None
    rows_today: int | None = None
    rows_latest: int | None = None
    updated_at: datetime | None = None

    @property
    def fails(self) -> bool:
        """Whether its last attempt failed."""
        success, failure = self.last_success, self.last_failure
        return failure is not None and (success is None or failure > success)


def unobserved(domain: str, subject: str, error: PerennialError) -> Finding:
    """The finding about something that could not be observed."""
    action = error.remedy or "see `perennial doctor`"
    return Finding(domain, subject, "broken", error.reason_code, error.message, action=action)


def is_healthy(found: Iterable[Finding]) -> bool:
    """Return whether everything is as it should be, or differs for a known reason."""
    return all(f.health == "explained" for f in found)


def needs_person(found: Iterable[Finding]) -> bool:
    """Return whether anything stays as it is until a person acts."""
    return any(f.health in ("broken", "stale") for f in found)


def in_utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def summary(
    found: Sequence[Finding], shown: Callable[[datetime], str] = in_utc, *, alone: bool = False
) -> str:
    """Return one sentence about all findings; `shown` writes a moment, `alone` says that no daemon runs."""
    if not found:
        return "healthy: nothing is missing, nothing waits, every source answered"
    counts = {kind: sum(f.health == kind for f in found) for kind in ORDER}
    counted = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
    if needs_person(found):
        return f"{counted}: a person is needed"
    if alone and counts["healing"]:
        return f"{counted}: no daemon runs here, so it goes on with the next command"
    coming = min((f.next_attempt for f in found if f.next_attempt is not None), default=None)
    return f"{counted}: no action needed" + (f", next attempt {shown(coming)}" if coming else "")

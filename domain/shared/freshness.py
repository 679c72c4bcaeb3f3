"""What a source's last answer and last failure mean, in every domain."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from domain.shared.health import SourceFreshness

FreshnessStatus = Literal["never_ingested", "error", "healthy", "stale"]


@dataclass(frozen=True)
class SourceState:
    status: FreshnessStatus
    reason: str


def source_state(
    source: SourceFreshness,
    age: timedelta | None,
    stale_from: timedelta,
    silent_beyond: timedelta,
    unit: str = "hours",
) -> SourceState:
    """Return the state of a source whose last success is this old, in time in which it was due to answer."""
    if source.fails:
        return SourceState("error", source.last_error or "the last attempt failed")
    if age is None:
        return SourceState("never_ingested", "no successful fetch yet")
    if age > silent_beyond:
        return SourceState("error", "silent")
    if age >= stale_from:
        return SourceState("stale", f"nothing new for {age.total_seconds() / 3600:.0f} {unit}")
    return SourceState("healthy", "")

"""Waiting as a value: how long before the next attempt. Nothing here sleeps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Backoff:
    """Exponential waits: `base · factor^attempt`, capped. The attempt is counted from 0.

    `max_attempts` None means for ever.
    """

    base: timedelta
    factor: float = 2.0
    cap: timedelta = timedelta(hours=1)
    max_attempts: int | None = None

    def delay(self, attempt: int) -> timedelta:
        # The exponent is bounded: a row that was tried 10,000 times must not overflow a float.
        seconds = self.base.total_seconds() * self.factor ** min(attempt, 64)
        return timedelta(seconds=min(seconds, self.cap.total_seconds()))

    def exhausted(self, attempts: int) -> bool:
        """Whether `attempts` finished attempts are all there may be."""
        return self.max_attempts is not None and attempts >= self.max_attempts

"""Waiting as a value: how long before the next attempt. Nothing here sleeps."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Backoff:
    """Exponential waits: `base · factor^attempt`, jittered, then capped.

    The attempt is counted from 0. Jitter is applied before the cap, so the cap is never exceeded.
    `max_attempts` None means for ever.
    """

    base: timedelta
    factor: float = 2.0
    cap: timedelta = timedelta(hours=1)
    jitter: float = 0.0
    max_attempts: int | None = None

    def delay(self, attempt: int, *, rng: random.Random | None = None) -> timedelta:
        # The exponent is bounded: a row that was tried 10,000 times must not overflow a float.
        seconds = self.base.total_seconds() * self.factor ** min(attempt, 64)
        if self.jitter:
            draw = rng.uniform if rng else random.uniform
            seconds *= 1 + draw(-self.jitter, self.jitter)
        return timedelta(seconds=min(seconds, self.cap.total_seconds()))

    def exhausted(self, attempts: int) -> bool:
        """Whether `attempts` finished attempts are all there may be."""
        return self.max_attempts is not None and attempts >= self.max_attempts


@dataclass(frozen=True)
class Delays:
    """An explicit list of waits between passes: n delays allow n + 1 passes."""

    seconds: Sequence[float]

    @property
    def retries(self) -> int:
        return len(self.seconds)

    def delay(self, retry: int) -> float:
        """The wait before retry number `retry` (counted from 1); the last wait repeats."""
        if not self.seconds:
            return 0.0
        return self.seconds[min(max(retry, 1), len(self.seconds)) - 1]

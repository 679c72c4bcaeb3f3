"""A value that costs something to observe, kept for a moment: many callers, one look."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")

SECONDS = 1.0
TIMES = 4
"""A value is kept four times as long as the look at it took: looks never take more than a fifth of a core."""
OLDEST = 10.0
"""Beyond its time, so many seconds a value may still be answered while somebody looks."""


class Recent(Generic[Value]):
    def __init__(self, look: Callable[[], Value], clock: Callable[[], float] = time.monotonic) -> None:
        self._look, self._clock = look, clock
        self._lock = threading.Lock()
        self._kept: tuple[Value, float] | None = None

    def get(self) -> Value:
        kept, now = self._kept, self._clock()
        if kept and now < kept[1]:
            return kept[0]
        wait = kept is None or now > kept[1] + OLDEST
        if not self._lock.acquire(blocking=wait) and kept:
            return kept[0]
        try:
            if self._kept and self._kept is not kept:  # found while this caller waited
                return self._kept[0]
            begun = self._clock()
            value = self._look()
            ended = self._clock()
            self._kept = value, ended + max(SECONDS, TIMES * (ended - begun))
            return value
        finally:
            self._lock.release()

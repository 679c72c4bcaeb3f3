"""Python's cycle collector, kept out of the way of bulk work."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_OFTEN_ENOUGH = (100_000, 50, 100)


@dataclass
class _Collector:
    """The first block to open changes the collector's thresholds, the last one restores them."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    blocks: int = 0
    usual: tuple[int, int, int] = (0, 0, 0)

    def enter(self) -> None:
        with self.lock:
            if not self.blocks:
                self.usual = gc.get_threshold()
                gc.set_threshold(*_OFTEN_ENOUGH)
            self.blocks += 1

    def leave(self) -> None:
        with self.lock:
            self.blocks -= 1
            if not self.blocks:
                gc.set_threshold(*self.usual)


_collector = _Collector()


@contextmanager
def collected_rarely() -> Iterator[None]:
    """Decoding makes lists by the hundred thousand and not one cycle; looking for some, the collector walks
    the whole heap of a process full of Dagster, hundreds of times: over 40 % of a backfill of 250 days.
    Reference counts free what it makes anyway; cycles are still collected, only later."""
    _collector.enter()
    try:
        yield
    finally:
        _collector.leave()

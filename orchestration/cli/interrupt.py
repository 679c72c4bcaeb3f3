"""Ctrl-C that is never lost.

Python drops an interrupt that arrives inside a finaliser or a callback of a C library, and a backfill is
full of both: one press in five did nothing. So a signal is given again every few seconds for as long as
the work it should end goes on.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_SECONDS = 5.0
"""Time to wind down: the calls that are under way end, the ledger is told."""
ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def insistent_interrupts() -> Iterator[None]:
    """SIGINT and SIGTERM that arrive inside are repeated until the body has ended. Main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    ended = threading.Event()
    repeater = threading.Thread(target=_repeat, args=(reading, ended), name="interrupts", daemon=True)
    repeater.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        ended.set()
        os.write(writing, b"\0")  # wakes the thread: zero is no signal
        repeater.join()
        os.close(reading)
        os.close(writing)


def _repeat(reading: int, ended: threading.Event) -> None:
    arrived: int | None = None
    while not ended.is_set():
        ready, _, _ = select.select([reading], [], [], None if arrived is None else PATIENCE_SECONDS)
        if ready:
            numbers = [n for n in os.read(reading, 64) if n in ENDING]
            arrived = numbers[-1] if numbers else arrived
        elif arrived is not None and not ended.is_set():
            os.kill(os.getpid(), arrived)

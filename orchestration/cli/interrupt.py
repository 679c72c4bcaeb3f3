"""Ctrl-C and SIGTERM: a command ends within two seconds, wherever it is, and says what was kept.

Nothing is raised: an exception at a random place meets code of others that swallows it, prints it or waits
for threads. A run executes in a thread of its own (`runner.py`), so the main thread is free to end the
process, as a kill would, after it gave back what the command has. If it is not free, a watcher ends it.

Imported before everything else, so only what Python itself has imported already is imported here.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

GRACE = 1.2
"""Seconds within which the command gives back what it has."""
GO_ON = "give the same command again to go on"

_clean_ups: list[Callable[[], str]] = []
_scratch: list[str | os.PathLike[str]] = []
_received: list[int] = []
_said = threading.Lock()


def handle_interrupts() -> Callable[[], None]:
    """From now on a signal ends this process with exit code 130 or 143; until the answer is called."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is _end:
        return lambda: None
    watched, noted = os.pipe()
    os.set_blocking(noted, False)
    threading.Thread(target=_watch, args=(watched,), name="interrupts", daemon=True).start()
    before = {number: signal.signal(number, _end) for number in (signal.SIGINT, signal.SIGTERM)}
    before_fd = signal.set_wakeup_fd(noted, warn_on_full_buffer=False)

    def restore() -> None:
        signal.set_wakeup_fd(before_fd)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(noted)

    return restore


@contextmanager
def interrupts_handled() -> Iterator[None]:
    """The same while inside."""
    restore = handle_interrupts()
    try:
        yield
    finally:
        restore()


@contextmanager
def clean_up(end: Callable[[], str]) -> Iterator[None]:
    """While inside, an interrupt calls `end` before the process ends; it returns counts of what is kept."""
    _clean_ups.append(end)
    try:
        yield
    finally:
        _clean_ups.remove(end)


@contextmanager
def scratch_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """While inside, an interrupt removes this file, also if the main thread is not free for `clean_up`."""
    _scratch.append(path)
    try:
        yield
    finally:
        _scratch.remove(path)


@contextmanager
def interrupts_raised() -> Iterator[None]:
    """While inside, Ctrl-C raises KeyboardInterrupt: for what a person ends in no other way."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(number: int, _frame: object) -> None:
    _received.append(number)
    if len(_received) > 1:
        _exit(number)
    _be_silent()
    kept = ""
    for end in _clean_ups:
        with suppress(Exception):
            kept = end()
    _leave(number, kept)


def _watch(watched: int) -> None:
    """End the process if its main thread does not: code that is no Python may keep it."""
    while byte := os.read(watched, 1):
        number = byte[0]
        if signal.getsignal(number) is _end:
            again, _, _ = select.select([watched], [], [], GRACE)
            _leave(number, "", silently=bool(again))
    os.close(watched)


def _leave(number: int, kept: str, *, silently: bool = False) -> None:
    if not silently and _said.acquire(blocking=False):
        show_cursor = "\x1b[?25h\n" if os.isatty(_TERMINAL) else ""
        counts = f" ({kept})" if kept else ""
        line = f"{show_cursor}interrupted: what was committed is kept{counts}; {GO_ON}\n"
        with suppress(OSError):
            os.write(_TERMINAL, line.encode())
    _exit(number)


def _exit(number: int) -> NoReturn:
    for path in _scratch:
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - pathlib is not imported yet
    os._exit(128 + number)


def leave_at_once(code: int) -> NoReturn:
    """End the process as it is: Python itself takes a second to tidy up what this program has imported."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _be_silent() -> None:
    """What ends in the middle has nothing to say."""
    import logging

    logging.disable(logging.CRITICAL)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


try:
    _TERMINAL = os.dup(2)
except OSError:
    _TERMINAL = 2
"""What stderr is at the start: Dagster points descriptor 2 elsewhere while a run executes."""

"""Progress of runs in this process: bars on a terminal, elsewhere a plain line now and then.

Dagster points descriptor 2 at the log of a run while it executes: both go to a duplicate of what it was.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PROGRESS, WAIT = "perennial.progress", "perennial.progress.wait"
"""The loggers whose records are shown; their args are (what, done, of) and (what, seconds)."""
EVERY = 10.0
"""Seconds between two plain lines."""


@contextmanager
def progress() -> Iterator[None]:
    """While inside, show the records of `PROGRESS` and `WAIT` on what is stderr now."""
    log = logging.getLogger(PROGRESS)
    with _kept(sys.stderr) as stream:
        shown = _Bars(stream) if stream.isatty() else Lines(stream)
        log.setLevel(logging.INFO)
        log.propagate = False
        log.addHandler(shown)
        try:
            yield
        finally:
            log.removeHandler(shown)
            log.propagate = True
            shown.close()


@contextmanager
def _kept(stream: TextIO) -> Iterator[TextIO]:
    """The stream, over a descriptor of its own if it has one."""
    try:
        number = os.dup(stream.fileno())
    except (OSError, ValueError):  # it is in memory
        yield stream
        return
    with os.fdopen(number, "w", encoding="utf-8", errors="replace") as kept:
        yield kept


class Lines(logging.Handler):
    """A line for each wait, and of a run that takes long one every ten seconds."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logging.INFO)
        self._stream = stream
        self._clock = clock
        self._next = {PROGRESS: clock() + EVERY, WAIT: clock()}

    def emit(self, record: logging.LogRecord) -> None:
        now = self._clock()
        if now < self._next[record.name]:
            return
        self._next[record.name] = now + (_args(record)[1] if record.name == WAIT else EVERY)
        self._stream.write(f"{record.getMessage()}\n")
        self._stream.flush()


class _Bars(logging.Handler):
    """A bar for each table, and how long the source makes everybody wait."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(logging.INFO)
        self._stream = stream
        self._bars: Progress | None = None
        self._tasks: dict[object, TaskID] = {}
        self._waits: dict[object, tuple[str, float]] = {}
        """Words and end of a wait, by what waits."""

    def emit(self, record: logging.LogRecord) -> None:
        if self._bars is None:
            self._bars = self._started()
        if record.name == WAIT:
            what, seconds = _args(record)
            self._waits[what] = (str(record.msg), time.monotonic() + seconds)
            return
        what, done, of = _args(record)
        if new := what not in self._tasks:
            self._tasks[what] = self._bars.add_task(str(what), total=of)
        self._bars.update(self._tasks[what], completed=done, total=of, refresh=new)

    def close(self) -> None:
        if self._bars is not None:
            self._bars.stop()
        super().close()

    def _started(self) -> Progress:
        from rich.console import Console, RenderableType
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        handler = self

        class Shown(Progress):
            def get_renderables(self) -> Iterable[RenderableType]:
                yield from super().get_renderables()
                now = time.monotonic()
                for what, (words, until) in list(handler._waits.items()):
                    if until > now:
                        yield words % (what, ceil(until - now))

        columns = (
            TextColumn("{task.description:24}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        # Dagster's log of the run keeps what others write to stderr.
        bars = Shown(
            *columns,
            console=Console(file=self._stream, highlight=False),
            refresh_per_second=4,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        bars.start()
        return bars


def _args(record: logging.LogRecord) -> tuple[Any, ...]:
    return record.args if isinstance(record.args, tuple) else ()

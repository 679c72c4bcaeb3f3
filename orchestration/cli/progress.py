"""Progress bars for runs in this process: fed by the progress records of our own log, on a terminal only."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

PROGRESS = "perennial.progress"


@contextmanager
def progress() -> Iterator[None]:
    """While open, records of the logger `perennial.progress` (args: what, done, of) move bars on stderr."""
    log = logging.getLogger(PROGRESS)
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        handler = _Bars(bars)
        log.addHandler(handler)
        try:
            yield
        finally:
            log.removeHandler(handler)


class _Bars(logging.Handler):
    def __init__(self, bars: object) -> None:
        super().__init__(logging.INFO)
        self._bars = bars
        self._tasks: dict[str, object] = {}

    def emit(self, record: logging.LogRecord) -> None:
        what, done, of = record.args  # type: ignore[misc]
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=of)
        self._bars.update(self._tasks[what], completed=done, total=of)

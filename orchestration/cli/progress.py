"""Progress bars for runs in this process, fed by the records of the logger `perennial.progress`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PROGRESS = "perennial.progress"


@contextmanager
def progress() -> Iterator[None]:
    """While inside, show records (args: what, done, of) as bars on stderr, if it is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        log, handler = logging.getLogger(PROGRESS), _Bars(bars)
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.setLevel(logging.NOTSET)
            log.propagate = True


class _Bars(logging.Handler):
    def __init__(self, bars: Progress) -> None:
        super().__init__(logging.INFO)
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if not isinstance(record.args, tuple) or len(record.args) != 3:
            return
        what, done, of = str(record.args[0]), float(str(record.args[1])), float(str(record.args[2]))
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=of)
        self._bars.update(self._tasks[what], completed=done, total=of)

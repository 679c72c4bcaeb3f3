"""Progress bars for runs in this process, fed by the records of the logger `perennial.progress`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@contextmanager
def progress() -> Iterator[None]:
    """While inside, show records (args: what, done, of) as bars on stderr, if it is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    log = logging.getLogger("perennial.progress")
    log.setLevel(logging.INFO)
    log.propagate = False
    with Progress(*columns, console=Console(stderr=True)) as bars:
        log.addHandler(shown := _Bars(bars))
        try:
            yield
        finally:
            log.removeHandler(shown)
            log.propagate = True


class _Bars(logging.Handler):
    def __init__(self, bars: Progress) -> None:
        super().__init__(logging.INFO)
        self._bars = bars
        self._tasks: dict[object, TaskID] = {}

    def emit(self, record: logging.LogRecord) -> None:
        what, done, of = record.args or (None, 0, 0)
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(str(what), total=float(str(of)))
        self._bars.update(self._tasks[what], completed=float(str(done)))

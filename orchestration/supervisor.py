"""Processes that live and end together: started, watched, logged, and stopped with nothing left over.

Knows nothing of Dagster; `cli/up.py` says what to run. All children are one process group: a Ctrl-C reaches
only the supervisor, and one signal reaches the children with their descendants. The children inherit a locked
file, so the kernel itself says whether a supervisor that was killed left some of them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from logging import Formatter, LogRecord
from logging.handlers import RotatingFileHandler
from math import inf
from pathlib import Path
from typing import IO

from domain.shared.error import PerennialError

GRACE_SECONDS = 8.0
"""A service manager that restarts us lets what is in the middle of a commit end."""
CTRL_C_SECONDS = 0.5
"""A person who presses Ctrl-C has the prompt back within two seconds. Whatever is killed heals."""
LEFT_OVER_SECONDS = 8.0
_LOG_BYTES = 10_000_000
_STEP_SECONDS = 0.1
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Command:
    """One child: its name in messages and logs, what to run, which of its lines to leave out."""

    name: str
    argv: Sequence[str]
    noise: re.Pattern[str] | None = None
    routine: re.Pattern[str] | None = None
    """Lines for the log only, not for the terminal."""


class AlreadyRunning(PerennialError):
    """Another supervisor of this home runs."""

    reason_code = "already_up"
    remedy = "stop it, or set PERENNIAL_HOME to another folder"


@contextlib.contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """Hold `lock` or raise AlreadyRunning. The kernel releases it when its holder dies."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+", encoding="utf-8") as file:
        if not _locks(file):
            raise AlreadyRunning(f"process {_read(file) or 'unknown'} holds {lock}")
        _write(file, os.getpid())
        yield


def end_left_over(lock: Path, *, grace_seconds: float = LEFT_OVER_SECONDS) -> bool:
    """End the children of a supervisor that was killed; False if there are none."""
    with lock.open("a+", encoding="utf-8") as file:
        if _locks(file):
            return False
        if not (group := int(_read(file) or 0)):
            raise AlreadyRunning(f"a process without a name holds {lock}")
        _end_group(group, lambda: not _signal_group(group, 0), grace_seconds)
        _wait_until(lambda: _locks(file), max(grace_seconds, LEFT_OVER_SECONDS))
        return True


class Child:
    """A running process: its lines go to the terminal, prefixed, and to a log of bounded size."""

    def __init__(
        self, command: Command, process: subprocess.Popen[str], log: Path, silent: Callable[[], bool]
    ) -> None:
        self.name, self.log, self.process = command.name, log, process
        self._silent = silent
        self._noise, self._routine = command.noise, command.routine
        self._reader = threading.Thread(target=self._relay, args=(process.stdout,), daemon=True)
        self._reader.start()

    def exit_code(self) -> int | None:
        return self.process.poll()

    def wait(self) -> None:
        """Wait for the end of a process that was killed, and for its last lines."""
        self.process.wait()
        self._reader.join(timeout=1)

    def _relay(self, lines: IO[str]) -> None:
        log = RotatingFileHandler(self.log, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
        log.setFormatter(Formatter("%(message)s"))
        with lines, contextlib.closing(log):
            for line in lines:
                text = _COLOUR.sub("", line.rstrip("\n"))
                if self._noise is None or not self._noise.search(text):
                    log.emit(LogRecord(self.name, 0, "", 0, text, None, None))
                    if not self._silent() and not (self._routine and self._routine.search(text)):
                        say(f"{self.name:<10} | {text}")


@dataclass
class Supervisor:
    """Starts children and stops them all as soon as one ends or a signal asks for it."""

    lock: Path
    environment: Mapping[str, str]
    working: Path
    logs: Path
    grace_seconds: float = GRACE_SECONDS
    _children: list[Child] = field(default_factory=list)
    _group: int = 0
    signals: list[int] = field(default_factory=list)
    """What a person sent: the children have nothing more to say."""

    @contextlib.contextmanager
    def running(self) -> Iterator[Supervisor]:
        """While inside, signals ask to stop; after the body, also one that raised, no child is left."""
        self.logs.mkdir(parents=True, exist_ok=True)
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self._on_signal) for number in numbers}
        try:
            with self.lock.open("a+", encoding="utf-8") as self._file:
                _locks(self._file)
                self._file.truncate(0)
                yield self
        finally:
            self._stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def start(self, command: Command) -> Child:
        """Start a child; the first one leads the process group."""
        process = subprocess.Popen(
            command.argv,
            env={**self.environment, "PYTHONUNBUFFERED": "1"},
            cwd=self.working,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=self._group,
            pass_fds=[self._file.fileno()],
        )
        if not self._group:
            self._group = process.pid
            _write(self._file, process.pid)
        log = self.logs / f"{command.name}.log"
        self._children.append(Child(command, process, log, lambda: bool(self.signals)))
        return self._children[-1]

    def wait_until(self, ready: Callable[[], bool]) -> bool:
        """True once `ready`; False if a signal came or a child ended before that."""
        while not self.signals and self.dead() is None:
            if ready():
                return True
            time.sleep(_STEP_SECONDS)
        return False

    def dead(self) -> Child | None:
        """The child that ended although no signal asked for it."""
        return next((c for c in self._children if c.exit_code() is not None), None)

    def _on_signal(self, number: int, _frame: object) -> None:
        self.signals.append(number)

    def _stop(self) -> None:
        if self._group:
            before = len(self.signals)
            ended = lambda: len(self.signals) > before or self._ended()  # noqa: E731
            hurry = signal.SIGINT in self.signals
            _end_group(self._group, ended, min(self.grace_seconds, CTRL_C_SECONDS if hurry else inf))
        for child in self._children:
            child.wait()

    def _ended(self) -> bool:
        # Every child is asked, because asking removes an ended one from the group.
        running = [child for child in self._children if child.exit_code() is None]
        return not running and not _signal_group(self._group, 0)


def say(text: str) -> None:
    """Print a line for the person at the terminal; a terminal that was closed must not stop the stopping."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def _locks(file: IO[str]) -> bool:
    """Lock the file, if no other process has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(file: IO[str]) -> str:
    file.seek(0)
    return file.read().strip()


def _write(file: IO[str], number: int) -> None:
    file.truncate(0)
    file.write(f"{number}\n")
    file.flush()


def _end_group(group: int, ended: Callable[[], bool], grace_seconds: float) -> None:
    _signal_group(group, signal.SIGTERM)
    _wait_until(ended, grace_seconds)
    _signal_group(group, signal.SIGKILL)


def _signal_group(group: int, number: int) -> bool:
    """Signal the group; False if no process of it is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        return True
    return False


def _wait_until(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(_STEP_SECONDS)

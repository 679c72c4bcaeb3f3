"""Processes that live and die together: started, watched, logged, and stopped with nothing left over.

Knows nothing of Dagster; `cli/up.py` says what to run. Every child leads a process group of its own, so
a Ctrl-C reaches only us and we decide the order. Children also carry a mark in their environment: on
Linux that finds descendants that left their group, and those of a supervisor that was killed.
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
from dataclasses import dataclass
from logging import Formatter, LogRecord
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import IO

MARK = "_PERENNIAL_SUPERVISED_BY"
GRACE_SECONDS = 8.0
_LOG_BYTES = 10_000_000
_STEP_SECONDS = 0.1
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Command:
    """One child: its name in messages and logs, what to run, and which of its lines nobody needs."""

    name: str
    argv: Sequence[str]
    noise: re.Pattern[str] | None = None


class AlreadyRunning(Exception):
    """Someone else holds the lock. `pid` is who, as far as the file says."""

    def __init__(self, pid: str) -> None:
        super().__init__(f"process {pid or 'unknown'}")
        self.pid = pid


@contextlib.contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """Hold `lock` or raise AlreadyRunning. The kernel lets go when its holder dies: it is never stale."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise AlreadyRunning(file.read().strip()) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def say(text: str) -> None:
    """A line for the person at the terminal. A closed one must not end the children untidily."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


class Child:
    """A running process: its lines go to the terminal, prefixed, and to a log of bounded size."""

    def __init__(self, command: Command, environment: Mapping[str, str], working: Path, logs: Path) -> None:
        self.name = command.name
        self._noise = command.noise
        self.log = logs / f"{command.name}.log"
        self._process = subprocess.Popen(
            command.argv,
            env=environment,
            cwd=working,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.group = self._process.pid
        assert self._process.stdout is not None  # noqa: S101 - asked for above
        self._reader = threading.Thread(target=self._relay, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self) -> int | None:
        return self._process.poll()

    def signal(self, number: int) -> None:
        """To the whole group, which may outlive its leader."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, number)

    def gone(self) -> bool:
        """Whether nothing of the group is left. Reaps the leader, else it would stay as a zombie."""
        self._process.poll()
        try:
            os.killpg(self.group, 0)
        except ProcessLookupError:
            return True
        except PermissionError:  # macOS says so of a group of zombies
            return self._process.poll() is not None
        return False

    def drain(self) -> None:
        """Wait for the last lines. Bounded: a stray descendant may still hold the pipe."""
        self._reader.join(timeout=1)

    def _relay(self, lines: IO[str]) -> None:
        log = RotatingFileHandler(self.log, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
        log.setFormatter(Formatter("%(message)s"))
        with lines, contextlib.closing(log):
            for line in lines:
                text = _COLOUR.sub("", line.rstrip("\n"))
                if self._noise is not None and self._noise.search(text):
                    continue
                log.emit(LogRecord(self.name, 0, "", 0, text, None, None))
                say(f"{self.name:<10} | {text}")


class Supervisor:
    """Starts children and stops them all as soon as one ends or a person says so."""

    def __init__(
        self,
        mark: str,
        environment: Mapping[str, str],
        working: Path,
        logs: Path,
        *,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self._mark = mark
        self._grace_seconds = grace_seconds
        self._environment = {**environment, MARK: mark, "PYTHONUNBUFFERED": "1"}
        self._working = working
        self._logs = logs
        self._children: list[Child] = []
        self._asked_to_stop = 0

    @contextlib.contextmanager
    def running(self) -> Iterator[Supervisor]:
        """While inside, signals ask us to stop; on leaving, however that happens, nothing is left."""
        self._logs.mkdir(parents=True, exist_ok=True)
        before = {
            n: signal.signal(n, self._on_signal) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        try:
            yield self
        finally:
            self._stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def start(self, command: Command) -> Child:
        child = Child(command, self._environment, self._working, self._logs)
        self._children.append(child)
        return child

    def wait_until(self, ready: Callable[[], bool]) -> bool:
        """True once `ready`; False if a person asked to stop or a child ended before that."""
        while not self._asked_to_stop and self.dead() is None:
            if ready():
                return True
            time.sleep(_STEP_SECONDS)
        return False

    def dead(self) -> Child | None:
        """The child that ended though nobody asked it to."""
        return next((c for c in self._children if c.exit_code() is not None), None)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._asked_to_stop += 1

    def _stop(self) -> None:
        for child in self._children:
            child.signal(signal.SIGTERM)
        impatient = self._asked_to_stop + 1
        end = time.monotonic() + self._grace_seconds
        while time.monotonic() < end and self._asked_to_stop < impatient and not self._all_gone():
            time.sleep(_STEP_SECONDS)
        for child in self._children:
            if not child.gone():
                child.signal(signal.SIGKILL)
        kill_marked(self._mark, grace_seconds=0)
        for child in self._children:
            child.drain()
            child.exit_code()

    def _all_gone(self) -> bool:
        # Every child is asked: asking is what reaps it.
        return not [child for child in self._children if not child.gone()]


def marked(mark: str) -> list[int]:
    """The processes that carry `mark`, by /proc; none where there is no /proc."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        # Processes end while we look, and others' environments are not ours to read.
        with contextlib.suppress(OSError):
            if wanted in entry.read_bytes().split(b"\0"):
                found.append(int(entry.parent.name))
    return [pid for pid in found if pid != os.getpid()]


def kill_marked(mark: str, *, grace_seconds: float = GRACE_SECONDS) -> int:
    """End every process that carries `mark`, politely for `grace_seconds`; returns how many there were."""
    found = marked(mark)
    if found and grace_seconds:
        _signal_all(found, signal.SIGTERM)
        end = time.monotonic() + grace_seconds
        while time.monotonic() < end and marked(mark):
            time.sleep(_STEP_SECONDS)
    _signal_all(marked(mark), signal.SIGKILL)
    return len(found)


def _signal_all(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)

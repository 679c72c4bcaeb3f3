"""Companions: processes that read or maintain a home during a round, until they are told to stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.chaos.home import Home, kill_group
from tests.chaos.rounds import Findings

STOP_SECONDS = 60.0


@contextmanager
def companions(home: Home, found: Findings, *modules: Sequence[str]) -> Iterator[None]:
    """Runs `python -m MODULE ARGUMENT…` for each as long as the body lasts; their reports go to `found`."""
    started = [
        (name, *home.start(*arguments, command=(sys.executable, "-m", f"tests.chaos.{name}")))
        for name, *arguments in modules
    ]
    try:
        yield
    finally:
        for _, process, _ in started:
            process.send_signal(signal.SIGTERM)
        for name, process, output in started:
            _collect(name, process, output, found)


def _collect(name: str, process: subprocess.Popen[bytes], output: Path, found: Findings) -> None:
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        found.complaints.append(f"{name} did not end within {STOP_SECONDS:.0f} s")
    finally:
        kill_group(process)
    printed = output.read_text(errors="replace").strip()
    try:
        report = json.loads(printed.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        found.complaints.append(f"{name} ended with {process.returncode} and no report: {printed[-600:]}")
        return
    found.count(**report["counts"])
    found.complaints += report["complaints"]


# In the companion's own process


def run_until_stopped(*loops: Callable[[threading.Event], None]) -> None:
    """Run these, each in a thread, until the signal to stop sets their event.

    Not in the main thread: Dagster makes an interrupt of the signal there.
    """
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    threads = [threading.Thread(target=loop, args=(stop,)) for loop in loops]
    for thread in threads:
        thread.start()
    parent = os.getppid()
    while not stop.wait(1.0):
        if os.getppid() != parent:
            stop.set()  # the round was killed and will send no signal
    for thread in threads:
        thread.join()


def report(counts: Mapping[str, int], complaints: Sequence[str]) -> None:
    print(json.dumps({"counts": dict(counts), "complaints": list(complaints)}), flush=True)

"""Starts and kills the processes of `worker.py`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.integration.services.references import worker

ROOT = Path(__file__).parents[4]


class Worker:
    """A process that is ready to begin."""

    def __init__(self, folder: Path, url: str, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, worker.__file__, str(folder), url, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ready"), self.process.communicate()[1]

    def begin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        out, err = self.process.communicate(timeout=240)
        assert self.process.returncode == 0, err
        found: dict[str, Any] = json.loads(out)
        return found

    def kill_after(self, seconds: float) -> bool:
        """Kill it with all its children; whether it was still at work."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        return self.process.returncode < 0

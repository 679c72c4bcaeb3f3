"""kill -9: of a run at work, of the daemon, and of `up` itself."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from orchestration.cli.up import free_port
from tests.e2e.running import DAILY, Running
from tests.processes import command_line, started_by_up
from tests.settings import make_settings

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PROMPT_SECONDS = 2.0
"""Within which the prompt is back."""


def test_up__run_is_killed__ends_it_and_heals_its_day(up: Running):
    day = up.days()[1]
    before, whole = up.newest_work(), up.versions([day])
    up.sandbox("DELETE", "calls")
    up.sandbox("POST", "faults", {"api": "daily", "kind": "stall", "seconds": 25, "times": 1})
    up.break_lake("--drop-day", day)

    def at_work() -> list[str]:
        return [r.run_id for r in up.work(before) if r.key == f"{DAILY}:{day}" and r.status == "running"]

    (run_id,) = up.wait(at_work, 60, "the run to be at work")
    up.wait(lambda: up.sandbox("GET", "calls?api=daily")["recent"], 30, "the stalled call")
    os.kill(_worker(up, run_id), signal.SIGKILL)
    killed = time.monotonic()

    up.wait(lambda: up.runs(runIds=[run_id])[0]["status"] == "FAILURE", 120, "the run to be ended")
    print(f"run ended after {time.monotonic() - killed:.1f} s")
    up.wait(lambda: up.versions([day]) == whole, 180, f"{day} to be healed")
    print(f"healed after {time.monotonic() - killed:.1f} s")
    up.settled()
    rows = [r for r in up.work(before) if r.key == f"{DAILY}:{day}"]
    assert [r.status for r in rows] == ["completed"]
    assert rows[0].run_id != run_id


def test_up__daemon_is_killed__stops_everything_and_names_its_log(tmp_path: Path):
    settings = make_settings(
        home=tmp_path / "home", ui_port=free_port(), sandbox_port=free_port(), api_port=0
    )
    running = Running(settings)
    running.start()
    daemon = next(pid for pid in started_by_up(settings.home) if "dagster._daemon" in command_line(pid))
    os.kill(daemon, signal.SIGKILL)
    said = running.ended()
    assert running.process.returncode == 1
    log = settings.home / "logs" / "daemon.log"
    assert f"daemon ended by itself with exit code -9, so everything is stopped; its log: {log}" in said
    assert started_by_up(settings.home) == []


def test_up__earlier_one_was_killed__ends_its_processes_and_starts(tmp_path: Path):
    settings = make_settings(
        home=tmp_path / "home", ui_port=free_port(), sandbox_port=free_port(), api_port=0
    )
    killed, again = Running(settings), Running(settings)
    killed.start()
    killed.process.kill()
    killed.process.wait()
    assert started_by_up(settings.home)
    again.start()
    assert "ended the processes of an earlier perennial up" in again.stop()
    assert again.process.returncode == 128 + signal.SIGINT
    assert again.said[-1] == "stopped: what was committed is kept; `perennial up` goes on with the rest\n"
    assert again.stopped_in < PROMPT_SECONDS
    assert started_by_up(settings.home) == []


def _worker(up: Running, run_id: str) -> int:
    """The process Dagster says it started for the run."""
    found = re.search(r"Started process for run \(pid: (\d+)\)", "\n".join(up.messages(run_id)))
    assert found
    return int(found[1])

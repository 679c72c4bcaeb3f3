"""`perennial up` with everything it starts: ready, stopped by one Ctrl-C, nothing left."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.cli.up import free_port, listens
from orchestration.domains.market import market_settings
from orchestration.environments import child_environment
from orchestration.settings import PROJECT_ROOT, Settings
from tests.processes import command_line, started_by_up
from tests.settings import make_settings

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

UP = (
    "import sys; from orchestration.cli.up import run_up; "
    "from orchestration.environments import load_settings; "
    "sys.exit(run_up(load_settings()))"
)

Up = tuple[Settings, "subprocess.Popen[str]"]


def start(settings: Settings) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", UP],
        env=child_environment(settings),
        cwd=PROJECT_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def read_until_ready(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if line.startswith("Perennial is up"):
            return line
    pytest.fail("never came up:\n" + "".join(seen))


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    settings = make_settings(home=tmp_path / "home", ui_port=free_port(), sandbox_port=free_port())
    with start(settings) as process:
        try:
            read_until_ready(process)
            yield settings, process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
    assert started_by_up(settings.home) == []


def test_up__ctrl_c__stops_everything(up: Up):
    settings, process = up
    with urllib.request.urlopen(f"http://127.0.0.1:{settings.ui_port}/server_info", timeout=10) as reply:
        assert reply.status == 200
    assert listens("127.0.0.1", market_settings(settings).sandbox_port)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert said.endswith("stopped\n")
    assert time.monotonic() - begin < 15
    assert started_by_up(settings.home) == []
    assert not listens("127.0.0.1", market_settings(settings).sandbox_port)


def test_up__one_part_dies__stops_the_rest_and_names_its_log(up: Up):
    settings, process = up
    sandbox = next(pid for pid in started_by_up(settings.home) if "sandbox" in command_line(pid))
    os.kill(sandbox, signal.SIGKILL)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert (
        "sandbox ended by itself with exit code -9, so everything is stopped; "
        f"its log: {settings.home}/logs/sandbox.log"
    ) in said


def test_up__earlier_one_was_killed__ends_its_processes_and_starts(up: Up):
    settings, process = up
    process.kill()
    process.wait()
    assert started_by_up(settings.home)
    with start(settings) as again:
        try:
            read_until_ready(again)
        finally:
            again.send_signal(signal.SIGTERM)
            again.communicate(timeout=30)
        assert again.returncode == 0

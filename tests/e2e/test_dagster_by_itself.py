"""Dagster's own commands from the root of a fresh copy, as people expect of a Dagster project."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.cli.up import free_port, listens
from orchestration.settings import PROJECT_ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PARTS = ("domain", "resources", "assets", "sensors", "orchestration", "sandbox")
FILES = ("dagster.yaml", "workspace.yaml", "pyproject.toml")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the commands need of the project, without the state of this folder."""
    for name in PARTS:
        shutil.copytree(
            PROJECT_ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", ".perennial")
        )
    for name in FILES:
        shutil.copy(PROJECT_ROOT / name, tmp_path)
    return tmp_path


def environment() -> dict[str, str]:
    """No setting at all: neither ours nor Dagster's."""
    ours = ("PERENNIAL_", "TUSHARE_", "DAGSTER_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def test_definitions_validate__no_arguments__succeeds(checkout: Path):
    done = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate"],
        cwd=checkout,
        env=environment(),
        capture_output=True,
        text=True,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "All code locations passed validation" in said


def test_dagster_dev__in_the_checkout__serves_the_code_and_keeps_its_state_there(checkout: Path):
    port = free_port()
    with _dev(checkout, port) as process:
        end = time.monotonic() + 90
        while not listens("127.0.0.1", port):
            assert time.monotonic() < end, "the UI never answered"
            assert process.poll() is None, "it ended by itself"
            time.sleep(0.25)
        assert (checkout / ".perennial" / "dagster" / "history").is_dir()


@contextlib.contextmanager
def _dev(checkout: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "dagster", "dev", "--port", str(port)],
        cwd=checkout,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=10)
        for pid in _of(checkout):
            os.kill(pid, signal.SIGKILL)


def _of(checkout: Path) -> Iterator[int]:
    """The sandbox that a first run may have started: it would wait some minutes for further calls."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(checkout) in file.read_text():
                yield int(file.parent.name)

"""`perennial api` as a process of its own, and what `perennial doctor` says of it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from orchestration.cli.up import free_port
from orchestration.doctor import examine
from orchestration.environments import child_environment
from orchestration.platform import serves_api
from orchestration.services import open_ledger
from orchestration.settings import PROJECT_ROOT, Settings
from tests.settings import make_settings

TOKEN = "operate-0123456789abcdef"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = make_settings(
        home=tmp_path / "home", domains=("carbon",), api_token=TOKEN, api_port=0, ui_port=free_port()
    )
    open_ledger(settings, write=True).close()
    return settings


@contextmanager
def running(settings: Settings, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The process and its port."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestration.cli", "api"],
            env=child_environment(settings),
            cwd=PROJECT_ROOT,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process, port_of(process, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def port_of(process: subprocess.Popen[bytes], log: Path) -> int:
    while process.poll() is None:
        if found := re.search(r"listening on http://127\.0\.0\.1:(\d+)", log.read_text()):
            return int(found[1])
    raise AssertionError(log.read_text())


def test_api__its_own_process__answers_logs_and_stops(settings: Settings, tmp_path: Path) -> None:
    log = tmp_path / "api.log"
    with running(settings, log) as (process, port):
        address, bearer = f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {TOKEN}"}
        assert requests.get(f"{address}/healthz", timeout=30).json() == {"status": "alive"}
        answer = requests.get(f"{address}/work?key=secret-of-anna", headers=bearer, timeout=30)
        assert answer.json() == {"items": [], "next_cursor": None}
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)
    said = log.read_text()
    [line] = [line for line in said.splitlines() if "GET /work" in line]
    assert re.search(r" INFO perennial\.api: GET /work 200 [\d.]+ ms 127\.0\.0\.1 [0-9a-f]{32}$", line)
    assert line.endswith(answer.headers["X-Request-ID"])
    assert "/healthz" not in said
    for secret in (TOKEN, "secret-of-anna", "Traceback"):
        assert secret not in said


def test_doctor__an_api_runs__does_not_call_it_another_program(settings: Settings, tmp_path: Path) -> None:
    with running(settings, tmp_path / "api.log") as (_, port):
        assert requests.get(f"http://127.0.0.1:{port}/healthz", timeout=30).ok
        assert serves_api("127.0.0.1", port)
        where = f"127.0.0.1:{port} (PERENNIAL_API_PORT)"
        found = f"`perennial api` runs at {where}; `perennial up` wants another or 0"
        assert ports(make_settings(settings, api_port=port)) == (True, found)
    assert ports(make_settings(settings, api_port=port)) == (True, f"{settings.ui_port}, {port} are free")
    assert ports(settings) == (True, f"{settings.ui_port} is free")


def ports(settings: Settings) -> tuple[bool, str]:
    [found] = [part for part in examine(settings) if part.part == "ports"]
    return found.ok, found.result

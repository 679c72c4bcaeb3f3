"""`python -m sandbox` as a process of its own."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.__main__ import main

ROOT = Path(__file__).parents[3]
START_SECONDS = 20

Start = Callable[..., tuple[subprocess.Popen[str], int]]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a server on a free port and waits for its port file."""
    processes: list[subprocess.Popen[str]] = []

    def begin(*arguments: str) -> tuple[subprocess.Popen[str], int]:
        port_file = tmp_path / f"port-{len(processes)}"
        serve = [sys.executable, "-m", "sandbox", "serve", "--port", "0", "--port-file", str(port_file)]
        process = subprocess.Popen(
            [*serve, *arguments],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        deadline = time.monotonic() + START_SECONDS
        while not port_file.exists():
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return process, int(port_file.read_text())

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def call(port: int, token: str = "sandbox-token", **params: Any) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/", json.dumps({"api_name": "daily", "token": token, "params": params}))
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def test_serve__signal__answers_and_ends_quietly(start: Start) -> None:
    process, port = start("--now", "2026-11-18T15:29", "--token", "mine=2000")
    assert call(port, trade_date="20261117")["data"]["items"]
    assert call(port, token="mine", trade_date="20261118")["data"]["items"] == []
    process.send_signal(signal.SIGTERM)
    _, printed = process.communicate(timeout=10)
    assert process.returncode == 0
    assert printed == f"sandbox: listening on http://127.0.0.1:{port}\n"


def test_serve__idle__ends(start: Start) -> None:
    process, _ = start("--exit-when-idle", "0.5")
    assert process.wait(timeout=10) == 0


def test_serve__parent_ends__ends(start: Start) -> None:
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process, port = start("--parent", str(parent.pid))
    assert call(port, trade_date="20261117")["code"] == 0
    parent.communicate(b"\n")
    assert process.wait(timeout=10) == 0


def test_faults__set_listed_and_cleared__change_the_answers(start: Start, tmp_path: Path) -> None:
    _, port = start("--now", "2026-11-18T20:00")
    url = ("--url", f"http://127.0.0.1:{port}")
    assert run("faults", "set", "daily", "day_quota", "--times", "1", *url).returncode == 0
    assert call(port, trade_date="20261117")["code"] == 40203
    assert call(port, trade_date="20261117")["code"] == 0
    script = tmp_path / "trouble.yaml"
    script.write_text("- {api: daily, kind: empty_day, day: 2026-11-17}\n")
    assert run("faults", "script", str(script), *url).returncode == 0
    assert call(port, trade_date="20261117")["data"]["items"] == []
    listed = json.loads(run("faults", "list", *url).stdout)["faults"]
    assert [rule["kind"] for rule in listed] == ["day_quota", "empty_day"]
    assert json.loads(run("faults", "clear", *url).stdout) == {"removed": 2}
    assert call(port, trade_date="20261117")["data"]["items"]
    counters = json.loads(run("calls", *url).stdout)["counters"]["daily"]
    assert (counters["calls"], counters["faulted"]) == (4, 2)
    assert json.loads(run("clock", "2026-11-17T09:00", *url).stdout)["now"].startswith("2026-11-17T01:00")
    assert call(port, trade_date="20261117")["data"]["items"] == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("faults", "set", "daily", "meteor"), 2),
        (("faults", "set", "weekly", "stall", "--url", "http://127.0.0.1:1"), 1),
        (("faults", "list", "--url", "http://127.0.0.1:1"), 1),
        (("serve", "--now", "noon"), 1),
        ((), 2),
    ],
)
def test_command__wrong_usage__ends_with_a_message(arguments: tuple[str, ...], code: int) -> None:
    done = run(*arguments)
    assert done.returncode == code
    assert done.stderr


def test_faults__set_twice__says_that_both_are_kept(start: Start) -> None:
    _, port = start()
    url = ("--url", f"http://127.0.0.1:{port}")
    assert run("faults", "set", "daily", "http_503", *url).stderr == ""
    assert run("faults", "set", "adj_factor", "http_503", *url).stderr == "", "of another api"
    again = run("faults", "set", "daily", "day_quota", *url)
    assert "daily has 1 already (http_503)" in again.stderr
    assert [rule["kind"] for rule in json.loads(again.stdout)["faults"]] == ["http_503"] * 2 + ["day_quota"]


def test_usage__of_the_sandbox__names_the_command_that_people_call() -> None:
    assert "usage: perennial sandbox faults set" in run("faults", "set", "--help").stdout

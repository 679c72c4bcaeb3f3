"""The sandbox as a process of its own, for a home whose sources it stands in for.

`ensure_sandbox` finds the one of a home or starts it, detached: it outlives the command that started it and
ends by itself when nobody has called for ten minutes. The sandbox writes its port into a file of the home; a
port is believed only after a sandbox answered there. A file lock lets several processes start one at once.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import requests
from filelock import FileLock, Timeout

from domain.shared.error import TransientResourceError

START_SECONDS = 30.0
IDLE_SECONDS = 600
ROOT = Path(__file__).parents[2]
"""The folder of the packages: a package of this name where a person works must not be started."""
_PING_SECONDS = 5.0
_POLL_SECONDS = 0.05

_children: list[subprocess.Popen[bytes]] = []
"""The sandboxes this process started, so that the next call reaps an ended one."""


class SandboxDown(TransientResourceError):
    """The sandbox could not be started, or does not answer."""

    reason_code = "sandbox_down"


def ensure_sandbox(
    home: Path, *, start_seconds: float = START_SECONDS, sleeper: Callable[[float], None] = time.sleep
) -> str:
    """The base address of this home's sandbox, which answers at this moment."""
    folder = home / "sandbox"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "server.lock", timeout=2 * start_seconds):
            _children[:] = [child for child in _children if child.poll() is None]
            return find_sandbox(home) or _start(home, start_seconds, sleeper)
    except Timeout as error:
        raise SandboxDown(
            f"another process has been starting the sandbox for {2 * start_seconds:g} s",
            remedy=f"see {folder / 'server.log'}",
        ) from error


def port_file(home: Path) -> Path:
    """Where the sandbox of this home writes its port."""
    return home / "sandbox" / "port"


def find_sandbox(home: Path) -> str | None:
    """The address of this home's sandbox if it answers."""
    try:
        port = port_file(home).read_text().strip()
    except FileNotFoundError:
        return None
    url = f"http://127.0.0.1:{port}"
    return url if port.isdecimal() and _answers(url) else None


def _start(home: Path, start_seconds: float, sleeper: Callable[[float], None]) -> str:
    port_file(home).unlink(missing_ok=True)
    log = home / "sandbox" / "server.log"
    command = [sys.executable, "-m", "sandbox", "serve", "--port", "0", "--port-file", str(port_file(home))]
    command += ["--exit-when-idle", str(IDLE_SECONDS)]
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a Ctrl-C or the end of the code location is not for it
            cwd=ROOT,
        )
    _children.append(child)
    deadline = time.monotonic() + start_seconds
    while time.monotonic() < deadline:
        if url := find_sandbox(home):
            return url
        if child.poll() is not None:
            raise SandboxDown(
                f"the sandbox ended with exit code {child.returncode}: {_log_tail(log)}",
                remedy=f"see {log}",
            )
        sleeper(_POLL_SECONDS)
    child.kill()
    raise SandboxDown(
        f"the sandbox did not answer within {start_seconds:g} s: {_log_tail(log)}", remedy=f"see {log}"
    )


def _answers(url: str) -> bool:
    """Whether a sandbox answers there, and not another program that got its port."""
    try:
        with requests.Session() as session:
            session.trust_env = False
            answer = session.get(f"{url}/_sandbox/health", timeout=_PING_SECONDS).json()
    except (requests.RequestException, ValueError):
        return False
    return isinstance(answer, dict) and answer.get("sandbox") == "tushare"


def _log_tail(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return " | ".join(lines[-3:]) or "it wrote nothing"

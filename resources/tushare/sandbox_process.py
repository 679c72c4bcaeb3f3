"""The sandbox exchange as a process of its own, for a code location that was started without one.

`ensure_sandbox` finds the one of a home or starts it, detached: it outlives the code location, serves its
reloads, and ends by itself when nobody has called for ten minutes. A file lock lets several processes
start one at once; a recorded address is believed only after a sandbox answered there.
"""

from __future__ import annotations

import importlib.util
import json
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
_PING_SECONDS = 5.0
_POLL_SECONDS = 0.05

_children: list[subprocess.Popen[bytes]] = []
"""The sandboxes this process started, so that the next call reaps an ended one."""


class SandboxDown(TransientResourceError):
    """The sandbox exchange could not be started, or does not answer."""

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
            return recorded_sandbox(home) or _start(home, start_seconds, sleeper)
    except Timeout as error:
        raise SandboxDown(
            f"another process has been starting the sandbox for {2 * start_seconds:g} s",
            remedy=f"see {folder / 'server.log'}",
        ) from error


def recorded_sandbox(home: Path) -> str | None:
    """The address of this home's sandbox if it answers."""
    try:
        url = str(json.loads((home / "sandbox" / "server.json").read_text())["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # never started, or written half
    return url if _answers(url) else None


def _start(home: Path, start_seconds: float, sleeper: Callable[[float], None]) -> str:
    folder = home / "sandbox"
    port_file = folder / "port"
    port_file.unlink(missing_ok=True)
    log = folder / "server.log"
    command = [sys.executable, "-m", "sandbox", "serve", "--port", "0", "--port-file", str(port_file)]
    command += ["--exit-when-idle", str(IDLE_SECONDS)]
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a Ctrl-C or the end of the code location is not for it
            cwd=_root_of_sandbox(),
        )
    _children.append(child)
    deadline = time.monotonic() + start_seconds
    while time.monotonic() < deadline:
        url = _address(port_file)
        if url is not None and _answers(url):
            remember_sandbox(home, url, child.pid)
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


def _root_of_sandbox() -> Path:
    spec = importlib.util.find_spec("sandbox")  # finds the package, imports nothing of it
    if spec is None or spec.origin is None:
        raise SandboxDown("there is no sandbox package", remedy="install the project, or run from its folder")
    return Path(spec.origin).parent.parent


def _address(port_file: Path) -> str | None:
    try:
        text = port_file.read_text().strip()
    except FileNotFoundError:
        return None
    return f"http://127.0.0.1:{int(text)}" if text.isdecimal() else None


def _answers(url: str) -> bool:
    """Whether a sandbox answers there, and not another program that got its port."""
    try:
        with requests.Session() as session:
            session.trust_env = False
            answer = session.get(f"{url}/_sandbox/health", timeout=_PING_SECONDS).json()
    except (requests.RequestException, ValueError):
        return False
    return isinstance(answer, dict) and answer.get("sandbox") == "tushare"


def remember_sandbox(home: Path, url: str, pid: int) -> None:
    """Records the address of this home's sandbox, so that no second one is started."""
    folder = home / "sandbox"
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / "server.json.new"
    fresh.write_text(json.dumps({"url": url, "pid": pid}))
    fresh.replace(folder / "server.json")


def _log_tail(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return " | ".join(lines[-3:]) or "it wrote nothing"

"""The processes that a `perennial up` started, as Linux shows them."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path


def started_by_up(home: Path) -> list[int]:
    """The living processes of the group that `up` noted in its home."""
    with contextlib.suppress(FileNotFoundError):
        if group := (home / "up.group").read_text().strip():
            return in_group(int(group))
    return []


def left_by_up(home: Path, seconds: float = 5) -> list[int]:
    """Those that still live after so long: a killed process takes a moment to end."""
    end = time.monotonic() + seconds
    while (found := started_by_up(home)) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def in_group(group: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                found.append(int(stat.parent.name))
    return found


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()

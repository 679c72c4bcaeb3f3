"""Which process a run of the command lives in, told so that another process can see that it is gone.

A lease says so after a minute; a person who gives the same command again should not have to wait for it.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

PROCESS = "perennial/process"
"""The tag of runs that live in the process of a command."""


def identity(pid: int | None = None) -> str | None:
    """Host, process namespace, pid and moment of birth; None where the system does not tell."""
    number = os.getpid() if pid is None else pid
    try:
        told = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        state, born = told[0], told[19]
        namespace = Path("/proc/self/ns/pid").readlink()
    except (OSError, IndexError):
        return None
    if state in "ZX":
        return None  # dead, and its parent has not looked yet
    return f"{socket.gethostname()} {namespace} {number} {born}"


def is_gone(told: str | None) -> bool:
    """Surely gone: it was of this host and namespace, and none of them has that pid and birth now."""
    here = identity()
    if told is None or here is None or told.split()[:2] != here.split()[:2]:
        return False
    return identity(int(told.split()[2])) != told

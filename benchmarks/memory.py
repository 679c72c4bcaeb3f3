"""The most memory this process ever held."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_gib() -> float:
    """The kernel's high-water mark of this program: `getrusage` also counts the one that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        [line] = [row for row in status.read_text().splitlines() if row.startswith("VmHWM")]
        return int(line.split()[1]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2 ** (30 if sys.platform == "darwin" else 20)

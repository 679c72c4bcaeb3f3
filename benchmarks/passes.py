"""What people wait for: a pass at a small warehouse, against the bare interpreter start."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TIMES = 9


CONTESTANTS: dict[str, tuple[str, ...]] = {
    "bare": ("-c", "import duckdb, pyarrow, sqlalchemy"),
    "status": ("-m", "orchestration.cli", "status"),
    "sql": ("-m", "orchestration.cli", "sql", "SELECT count(*) FROM market.normalized_daily"),
    "load": ("-c", "import orchestration.definitions"),
    "dagster": ("-c", "import dagster"),
    "needed": ("-c", "import dagster, sqlalchemy, pyarrow.compute, duckdb"),
}


def run() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PERENNIAL_HOME": home, "PERENNIAL_SOURCE": "sandbox"}
        _seconds(environment, "-m", "orchestration.cli", "market", "heal")
        took = _medians(environment)
    bare, dagster, needed, load = (took[name] for name in ("bare", "dagster", "needed", "load"))
    print(f"passes: bare imports {bare:.2f} s, sql {took['sql']:.2f} s, status {took['status']:.2f} s")
    print(
        f"code location: import dagster {dagster:.2f} s, with what every run needs {needed:.2f} s, "
        f"definitions {load:.2f} s"
    )
    return {
        "status_over_bare_imports": took["status"] / bare,
        "sql_over_bare_imports": took["sql"] / bare,
        "code_location_over_dagster": load / dagster,
        "code_location_over_what_runs_need": load / needed,
    }


def _medians(environment: dict[str, str]) -> dict[str, float]:
    """In turns, so that a slow minute of the machine is one of all of them."""
    times: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    for _ in range(TIMES):
        for name, arguments in CONTESTANTS.items():
            times[name].append(_seconds(environment, *arguments))
    return {name: statistics.median(some) for name, some in times.items()}


def _seconds(environment: dict[str, str], *arguments: str) -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, check=True, capture_output=True)
    return time.monotonic() - began

"""What people wait for: a look at a small warehouse, against the bare interpreter start."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TIMES = 5


def run() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PERENNIAL_HOME": home, "PERENNIAL_SOURCE": "sandbox"}
        _run(environment, "orchestration.cli", "market", "heal")
        bare = _median(environment, "-c", "import duckdb, pyarrow, sqlalchemy")
        status = _median(environment, "-m", "orchestration.cli", "status")
        sql = _median(
            environment, "-m", "orchestration.cli", "sql", "SELECT count(*) FROM market.normalized_daily"
        )
        load = _median(environment, "-c", "import orchestration.definitions")
        dagster = _median(environment, "-c", "import dagster")
        needed = _median(environment, "-c", "import dagster, sqlalchemy, pyarrow.compute, duckdb")
    print(f"looks: bare imports {bare:.2f} s, sql {sql:.2f} s, status {status:.2f} s")
    print(
        f"code location: import dagster {dagster:.2f} s, with what every run needs {needed:.2f} s, "
        f"definitions {load:.2f} s"
    )
    return {
        "status_over_bare_imports": status / bare,
        "sql_over_bare_imports": sql / bare,
        "code_location_over_dagster": load / dagster,
        "code_location_over_what_runs_need": load / needed,
    }


def _run(environment: dict[str, str], module: str, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env=environment,
        check=False,
        capture_output=True,
    )


def _median(environment: dict[str, str], *arguments: str) -> float:
    times = []
    for _ in range(TIMES):
        began = time.monotonic()
        subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=environment, check=False, capture_output=True
        )
        times.append(time.monotonic() - began)
    return statistics.median(times)

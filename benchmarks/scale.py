"""One, five and ten years of all daily tables: what grows with the warehouse, and what must not.

Filled from the sandbox by `perennial market backfill`, one year after the other, in one home, which is put by
at each age. Then the ages take turns, so that a slow minute of the machine is one of all of them: a pass,
`status`, `plan`, a day's commit, a one-stock and a one-day query, and at the end size and files on disk.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

from benchmarks.backfill import LAST, ROOT, TOKEN, _source
from sandbox.exchange import Exchange

AGES = (1, 5, 10)
TURNS = 3
UPKEEP = (
    "for name in market.lake.tables: market.lake.maintain(name, compact_before=None, "
    "now=datetime.now(UTC) + timedelta(days=8), expire_after=timedelta(days=7))"
)
"""What the nights of the following week do. The years are filled within minutes, and until their snapshots
expire a commit carries the history of all of them and takes 1.6 times as long as after one year."""


def run(years: int = AGES[-1]) -> dict[str, float]:
    days = list(Exchange().open_days(date(LAST.year - years, LAST.month, LAST.day), LAST))
    ages = [age for age in AGES if age <= years]
    found: dict[int, list[dict[str, float]]] = {age: [] for age in ages}
    with tempfile.TemporaryDirectory() as folder, _source(Path(folder)) as url:
        home = Path(folder) / "home"
        environment = {
            **os.environ,
            "PERENNIAL_HOME": str(home),
            "PERENNIAL_SOURCE": "sandbox",
            "TUSHARE_URL": url,
            "TUSHARE_TOKEN": TOKEN,
        }
        for year in range(1, years + 1):
            first = date(LAST.year - year, LAST.month, LAST.day)
            until = days[-1] if year == 1 else date(LAST.year - year + 1, LAST.month, LAST.day)
            began = time.monotonic()
            # Named once: the home keeps it.
            begins = environment | {"PERENNIAL_MARKET_START": str(first)}
            _perennial(begins, "market", "backfill", "--from", str(first), "--to", str(until))
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            print(f"year {year}: filled in {time.monotonic() - began:.0f} s, peak memory {peak:.0f} MiB")
            if year in AGES:
                _inside(environment, UPKEEP, times=1)
                shutil.copytree(home, _put_by(home, year), symlinks=True)
        shutil.rmtree(home)
        for _ in range(TURNS):
            for age, took in found.items():
                # Under the name it was filled under: the lake's files know each other by their whole paths.
                _put_by(home, age).rename(home)
                took.append(_measure(environment, home, days[-1]))
                home.rename(_put_by(home, age))
    medians = {age: _medians(took) for age, took in found.items()}
    for age, took in medians.items():
        print(f"{age} years: {', '.join(f'{k} {v:,.3f}' for k, v in took.items())}")
    young, old = medians[min(ages)], medians[max(ages)]
    return {f"{name}_{max(ages)}_years_over_1": old[name] / young[name] for name in young}


def _put_by(home: Path, age: int) -> Path:
    return home.with_name(f"{home.name} after {age} years")


def _medians(turns: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}


def _perennial(environment: dict[str, str], *arguments: str) -> None:
    command = [sys.executable, "-m", "orchestration.cli", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def _measure(environment: dict[str, str], home: Path, newest: date) -> dict[str, float]:
    prices = "market.normalized_daily"
    measured = {
        "look_seconds": _inside(environment, "market.plan()", times=40),
        "status_seconds": _median(lambda: _perennial(environment, "status")),
        "plan_seconds": _median(lambda: _perennial(environment, "plan", "market")),
        "one_day_commit_seconds": _inside(
            environment,
            f"market.lake.replace('{prices}', '{newest}', rows.slice(0, rows.num_rows - 1 - n))",
            f"rows = market.lake.sql(\"SELECT * FROM {prices} WHERE trade_date = DATE '{newest}'\")",
        ),
        "one_stock_seconds": _inside(
            environment, f"market.lake.sql(\"SELECT * FROM {prices} WHERE ts_code = '600000.SH'\")"
        ),
        "one_day_seconds": _inside(
            environment, f"market.lake.sql(\"SELECT * FROM {prices} WHERE trade_date = DATE '{newest}'\")"
        ),
    }
    # Counted last: the commits have taken old metadata files away.
    files = [p for p in (home / "lake").rglob("*") if p.is_file()]
    return measured | {"size_mib": sum(p.stat().st_size for p in files) / 2**20, "files": float(len(files))}


def _inside(environment: dict[str, str], statement: str, before: str = "pass", times: int = 6) -> float:
    """The median of a statement in one process that is warm: the first two do not count."""
    code = (
        "import time, statistics\n"
        "from datetime import UTC, datetime, timedelta\n"
        "from orchestration.environments import load_settings\n"
        "from orchestration.domains.market import open_market\n"
        "market = open_market(load_settings(), write=True)\n"
        f"{before}\n"
        "times = []\n"
        f"for n in range({times} + 2):\n"
        "    began = time.monotonic()\n"
        f"    {statement}\n"
        "    times.append(time.monotonic() - began)\n"
        "print(statistics.median(times[2:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return float(done.stdout)


def _median(work: Callable[[], None], times: int = 3) -> float:
    taken = []
    for _ in range(times):
        began = time.monotonic()
        work()
        taken.append(time.monotonic() - began)
    return statistics.median(taken)

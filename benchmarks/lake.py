"""The lake: commits as a table grows old, four writers on one table, and queries against bare DuckDB.

Frames have the shape of a real day: 5,400 stocks in the columns of `market.normalized_daily`.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from domain.market.catalogue import catalogue
from resources.lake.client import Lake

PRICES = catalogue().by_name("normalized_daily").table
STOCKS = 5_400
FIRST = date(2022, 1, 3)
COMMITS = 1_000
EACH_WRITER = 25


def run(commits: int = COMMITS) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        return _growth(Path(folder) / "growth", commits) | _writers(Path(folder) / "writers")


def queries(days: int = 250) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        return _queries(Path(folder), days)


def opened(home: Path) -> Lake:
    home.mkdir(parents=True, exist_ok=True)
    return Lake(
        catalog_url=f"sqlite:///{home}/catalog.db",
        warehouse=f"file://{home}/lake",
        home=home,
        tables=[PRICES],
    )


def day(number: int) -> date:
    """The weekdays, one after the other."""
    weeks, weekday = divmod(number, 5)
    return FIRST + timedelta(days=7 * weeks + weekday)


def frame(*numbers: int) -> pa.Table:
    rng = np.random.default_rng(numbers[0])
    count = STOCKS * len(numbers)
    columns: dict[str, pa.Array] = {}
    for column in PRICES.schema:
        if column.name == "ts_code":
            columns[column.name] = pa.array([f"{n:06d}.SZ" for n in range(STOCKS)] * len(numbers))
        elif column.name == "trade_date":
            days = np.repeat(np.array([day(n) for n in numbers], dtype="datetime64[D]"), STOCKS)
            columns[column.name] = pa.array(days)
        else:
            columns[column.name] = pa.array(np.round(rng.random(count) * 100, 2)).cast(column.type)
    return pa.table(columns)


def _growth(home: Path, commits: int) -> dict[str, float]:
    lake, times = opened(home), []
    for number in range(commits):
        rows, name = frame(number), str(day(number))
        began = time.monotonic()
        lake.replace(PRICES.name, name, rows)
        times.append(time.monotonic() - began)
        if number % 30 == 29:  # as the nightly upkeep does, if less often
            now = datetime.now(UTC) + timedelta(days=2)
            lake.maintain(PRICES.name, now=now, compact_before=name, expire_after=timedelta(days=1))
    early, late = statistics.median(times[5:15]), statistics.median(times[-10:])
    print(f"commit of one day: {early * 1000:.0f} ms as the 10th, {late * 1000:.0f} ms as the {commits}th")
    return {"commit_last_over_10th": late / early}


def _write(home: str, first: int, times: multiprocessing.Queue[list[float]]) -> None:
    """The first commit is not counted: it pays for the imports of its process."""
    lake, taken = opened(Path(home)), []
    for number in range(first, first + EACH_WRITER):
        rows = frame(number)
        began = time.monotonic()
        lake.replace(PRICES.name, str(day(number)), rows)
        taken.append(time.monotonic() - began)
    times.put(taken[1:])


def _writers(home: Path) -> dict[str, float]:
    spawn = multiprocessing.get_context("spawn")

    def taken(writers: int, folder: Path) -> list[float]:
        opened(folder).replace(PRICES.name, str(day(900)), frame(900))
        times = spawn.Queue()
        processes = [spawn.Process(target=_write, args=(str(folder), 100 * n, times)) for n in range(writers)]
        for process in processes:
            process.start()
        found = [t for _ in processes for t in times.get()]
        for process in processes:
            process.join()
        stored = opened(folder).partitions(PRICES.name)
        assert len(stored) == writers * EACH_WRITER + 1, "a commit was lost"
        return found

    one, four = statistics.median(taken(1, home / "one")), max(taken(4, home / "four"))
    print(f"one writer {one * 1000:.0f} ms (median), the worst of four at once {four * 1000:.0f} ms")
    return {"worst_of_four_writers_over_one": four / one}


def _queries(home: Path, days: int) -> dict[str, float]:
    lake = opened(home)
    for first in range(0, days, 20):
        numbers = range(first, min(first + 20, days))
        lake.replace(PRICES.name, [str(day(n)) for n in numbers], frame(*numbers))
    files = [str(p) for p in (home / "lake").rglob("*.parquet")]
    bare = duckdb.connect(":memory:", config={"threads": 2})
    some = day(days // 2)
    ratios = {}
    for name, where in (("one_stock", "ts_code = '000777.SZ'"), ("one_day", f"trade_date = DATE '{some}'")):
        ours = _median(lambda w=where: lake.sql(f"SELECT * FROM {PRICES.name} WHERE {w}"))
        theirs = _median(
            lambda w=where: bare.sql(f"SELECT * FROM read_parquet({files}) WHERE {w}").to_arrow_table()
        )
        print(f"{name} of {days} days: {ours * 1000:.1f} ms here, {theirs * 1000:.1f} ms bare DuckDB")
        ratios[f"query_{name}_over_bare"] = ours / theirs
    return ratios


def _median(work: Callable[[], object], times: int = 15) -> float:
    taken = []
    for _ in range(times + 3):
        began = time.monotonic()
        work()
        taken.append(time.monotonic() - began)
    return statistics.median(taken[3:])

"""What must hold while real processes write, read and die at once. Subclasses give `catalog_url`."""

from __future__ import annotations

import multiprocessing as mp
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest

from resources.lake.client import Lake
from tests.unit.resources.lake.frames import CODES, DAILY, TABLES, days_from, prices, rows_of, version_of

WRITERS = 4
DAYS_EACH = 5
SPAWN = mp.get_context("spawn")


def open_lake(catalog_url: str, home: str) -> Lake:
    return Lake(
        catalog_url=catalog_url,
        warehouse=f"{home}/warehouse",
        home=Path(home),
        tables=TABLES,
        memory_limit="256MB",
    )


def days_of(writer: int) -> list[str]:
    return days_from("2026-09-20", WRITERS * DAYS_EACH)[writer::WRITERS]


def write(catalog_url: str, home: str, writer: int, start: Event) -> None:
    lake = open_lake(catalog_url, home)
    start.wait(60)
    for scale in (1, 2):
        for day in days_of(writer):
            lake.replace("market.prices", day, prices(day, scale=scale))


def read(catalog_url: str, home: str, stop: Event, failures: Any) -> None:
    lake = open_lake(catalog_url, home)
    passes = 0
    try:
        while not stop.is_set() or passes == 0:
            passes += 1
            rows = lake.sql("SELECT trade_date, count(*) AS n FROM market.prices GROUP BY 1").to_pylist()
            if wrong := [r for r in rows if r["n"] != len(CODES)]:
                failures.put(f"half a day was seen: {wrong}")
            lake.versions("market.prices", days_of(0))
    except Exception as error:  # noqa: BLE001 - whatever a reader meets fails the test
        failures.put(repr(error))
    failures.put(None)


def write_until_killed(catalog_url: str, home: str, ready: Event) -> None:
    lake = open_lake(catalog_url, home)
    for scale in range(3, 10_000):
        lake.replace("market.prices", "2026-11-16", prices("2026-11-16", scale=scale))
        ready.set()


@pytest.mark.chaos
class LakeRaces:
    def test_four_writers_lose_no_commit_and_disturb_no_reader(
        self, tmp_path: Path, catalog_url: str
    ) -> None:
        start, stop, failures = SPAWN.Event(), SPAWN.Event(), SPAWN.Queue()
        home = str(tmp_path)
        writers = [SPAWN.Process(target=write, args=(catalog_url, home, n, start)) for n in range(WRITERS)]
        reader = SPAWN.Process(target=read, args=(catalog_url, home, stop, failures))
        for process in (*writers, reader):
            process.start()
        start.set()  # all meet a lake that does not exist yet
        for process in writers:
            process.join(120)
        stop.set()
        met = []
        while (failure := failures.get(timeout=60)) is not None:
            met.append(failure)
        reader.join(60)
        assert met == []
        assert [p.exitcode for p in writers] == [0] * WRITERS
        lake = open_lake(catalog_url, home)
        days = days_from("2026-09-20", WRITERS * DAYS_EACH)
        assert lake.partitions("market.prices") == days
        wanted = {day: version_of(DAILY, prices(day, scale=2)) for day in days}
        assert lake.versions("market.prices", days) == wanted
        state = lake._writer.views.of(lake.tables["market.prices"]).metadata
        assert state is not None
        assert len(state.snapshots) == 2 * len(days), "every commit is a snapshot of its own"

    @pytest.mark.parametrize("wait", [0.01, 0.05, 0.11, 0.17])
    def test_a_writer_killed_in_a_commit_leaves_the_old_or_the_new_rows(
        self, tmp_path: Path, catalog_url: str, wait: float
    ) -> None:
        ready = SPAWN.Event()
        victim = SPAWN.Process(target=write_until_killed, args=(catalog_url, str(tmp_path), ready))
        victim.start()
        assert ready.wait(60)
        time.sleep(wait)
        victim.kill()
        victim.join(30)
        lake = open_lake(catalog_url, str(tmp_path))
        rows = rows_of(lake, "market.prices").to_pylist()
        scales = {
            round(row["close"] / whole["close"], 6)
            for row, whole in zip(rows, prices("2026-11-16").to_pylist(), strict=True)
        }
        assert len(scales) == 1, "rows of two commits are mixed"
        assert lake.replace("market.prices", "2026-11-16", prices("2026-11-16")).changed, (
            "the lock was left behind"
        )
        assert lake.versions("market.prices", ["2026-11-16"]) == {
            "2026-11-16": version_of(DAILY, prices("2026-11-16"))
        }

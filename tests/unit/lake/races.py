"""What must hold while real processes write, read and die at once. Subclasses give `catalog_url`."""

from __future__ import annotations

import json
import multiprocessing as mp
import time
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any

import pytest

from domain.shared.error import PerennialError
from resources.lake.client import Lake
from resources.lake.ownership import MARK
from tests.unit.lake.frames import CODES, TABLES, days_from, prices

WRITERS = 4
DAYS_EACH = 5
CLAIMS = 60
SPAWN = mp.get_context("spawn")


def open_lake(catalog_url: str, home: str) -> Lake:
    return Lake.open(
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
    looks = 0
    try:
        while not stop.is_set() or looks == 0:
            looks += 1
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


def write_first(catalog_url: str, home: str, scale: int, start: Barrier, met: Any) -> None:
    """The first write of an environment, into a warehouse that another one has been given, too."""
    lake = Lake.open(
        catalog_url=catalog_url, warehouse=f"{Path(home).parent}/warehouse", home=Path(home), tables=TABLES
    )
    lake._writer.catalog.open()  # what takes long is done before all begin at once
    start.wait(60)
    try:
        lake.replace("market.prices", "2026-11-16", prices("2026-11-16", scale=scale))
    except PerennialError as error:
        met.put((scale, error.reason_code))
    else:
        met.put((scale, "written"))


def claim_each(catalog_url: str, home: str, start: Barrier, met: Any) -> None:
    """One new warehouse after the other, each at the same moment as another environment."""
    for number in range(CLAIMS):
        lake = Lake.open(
            catalog_url=catalog_url,
            warehouse=f"{Path(home).parent}/warehouse-{number}",
            home=Path(home),
            tables=TABLES,
        )
        lake._writer.catalog.open()
        start.wait(60)
        try:
            lake._ownership.ensure()
        except PerennialError as error:
            met.put((number, error.reason_code))
        else:
            met.put((number, "owned"))


@pytest.mark.hunt
class LakeRaces:
    def test_every_warehouse_claimed_by_two_at_once_has_one_owner(
        self, tmp_path: Path, catalog_url: str
    ) -> None:
        start, met = SPAWN.Barrier(2), SPAWN.Queue()
        catalogs = {"one": catalog_url, "two": f"sqlite:///{tmp_path}/two/catalog.db"}
        claimants = [
            SPAWN.Process(target=claim_each, args=(url, str(tmp_path / name), start, met))
            for name, url in catalogs.items()
        ]
        for process in claimants:
            process.start()
        said = sorted(met.get(timeout=120) for _ in range(2 * CLAIMS))
        for process in claimants:
            process.join(60)
        assert said == [(n, word) for n in range(CLAIMS) for word in ("foreign_warehouse", "owned")]

    def test_of_two_environments_that_write_first_at_once_one_gets_the_warehouse(
        self, tmp_path: Path, catalog_url: str
    ) -> None:
        start, met = SPAWN.Barrier(4), SPAWN.Queue()
        environments = {
            1: (catalog_url, str(tmp_path / "one")),
            2: (f"sqlite:///{tmp_path}/two/catalog.db", str(tmp_path / "two")),
        }
        writers = [
            SPAWN.Process(target=write_first, args=(*environments[scale], scale, start, met))
            for scale in (1, 2, 1, 2)
        ]
        for process in writers:
            process.start()
        said = sorted(met.get(timeout=120) for _ in writers)
        for process in writers:
            process.join(60)
        (owner,) = {scale for scale, word in said if word == "written"}
        other = 3 - owner
        assert sorted(said) == sorted([(owner, "written"), (other, "foreign_warehouse")] * 2)
        mark = json.loads((tmp_path / "warehouse" / MARK).read_bytes())
        url, home = environments[owner]
        lake = Lake.open(catalog_url=url, warehouse=f"{tmp_path}/warehouse", home=Path(home), tables=TABLES)
        assert mark["identity"] == lake._ownership.pointers.identity()
        wanted = lake.version_of("market.prices", prices("2026-11-16", scale=owner))
        assert lake.version("market.prices", "2026-11-16") == wanted
        made = [len(list((tmp_path / "warehouse").rglob(kind))) for kind in ("*.metadata.json", "*.parquet")]
        assert made == [2, 1], "of the other nothing was written"

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
        wanted = {day: lake.version_of("market.prices", prices(day, scale=2)) for day in days}
        assert lake.versions("market.prices", days) == wanted
        state = lake._writer.views.of(lake.tables["market.prices"]).state
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
        rows = lake.scan("market.prices").read_all().to_pylist()
        scales = {
            round(row["close"] / whole["close"], 6)
            for row, whole in zip(rows, prices("2026-11-16").to_pylist(), strict=True)
        }
        assert len(scales) == 1, "rows of two commits are mixed"
        assert lake.replace("market.prices", "2026-11-16", prices("2026-11-16")).changed, (
            "the lock was left behind"
        )
        assert lake.versions("market.prices", ["2026-11-16"]) == {
            "2026-11-16": lake.version_of("market.prices", prices("2026-11-16"))
        }

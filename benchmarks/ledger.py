"""The ledger: claims answered per second by 1, 4 and 8 processes, in a young table and in an old one."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from datetime import timedelta

from sqlalchemy import create_engine

from domain.shared.backoff import Backoff
from domain.shared.clock import machine_clock
from domain.shared.work import Kind, WorkRequest
from resources.ledger.client import Ledger
from resources.ledger.schema import work
from tests.postgres import Server, running_server

KIND = Kind("bench.work", transient=Backoff(base=timedelta(seconds=1)))
ITEMS = 1_600
AGES = (1_000, 100_000)
PROCESSES = (1, 4, 8)
AT_ONCE = 20


def run() -> dict[str, float]:
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, running_server() as server:
        for kind in ("sqlite", "postgres"):
            for processes in PROCESSES:
                urls = [
                    f"sqlite:///{folder}/{processes}-{age}.db"
                    if kind == "sqlite"
                    else new_database(server, f"bench_{processes}_{age}")
                    for age in AGES
                ]
                young, old = (_speed(url, processes, age) for url, age in zip(urls, AGES, strict=True))
                print(f"{kind}, {processes} processes: {young:,.0f} claims/s young, {old:,.0f} old")
                ratios[f"claims_{kind}_{processes}_young_over_old"] = young / old
    return ratios


def new_database(server: Server, name: str) -> str:
    engine = create_engine(server.url("postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return server.url(name)


def _open(url: str) -> Ledger:
    return Ledger.open(url, kinds=[KIND], clock=machine_clock)


def _work(url: str, name: str, go: float, done: multiprocessing.Queue[int]) -> None:
    ledger = _open(url)
    time.sleep(max(0.0, go - time.time()))
    count = 0
    while rows := ledger.claim(KIND.name, holder=name, limit=AT_ONCE):
        for row in rows:
            ledger.complete(row)
        count += len(rows)
    done.put(count)


def _speed(url: str, processes: int, age: int) -> float:
    ledger = _open(url)
    ledger.migrate()
    _grow_old(ledger, age)
    ledger.enqueue([WorkRequest(KIND.name, f"new {n}", "f") for n in range(ITEMS)])
    spawn = multiprocessing.get_context("spawn")
    done = spawn.Queue()
    go = time.time() + 2 + processes / 2
    workers = [spawn.Process(target=_work, args=(url, f"w{n}", go, done)) for n in range(processes)]
    for worker in workers:
        worker.start()
    won = sum(done.get() for _ in workers)
    taken = time.time() - go
    for worker in workers:
        worker.join()
    assert won == ITEMS, f"{won} of {ITEMS} claimed"
    return won / taken


def _grow_old(ledger: Ledger, age: int) -> None:
    """Finished rows, put there in one statement: nobody waits for a hundred thousand honest ones."""
    ledger.enqueue([WorkRequest(KIND.name, "seed", "f")])
    [row] = ledger.claim(KIND.name, holder="seed", limit=1)
    ledger.complete(row)
    postgres = ledger.engine.dialect.name == "postgresql"
    numbers = (
        f"SELECT generate_series(1, {age}) AS i"
        if postgres
        else "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
        f"WHERE i < {age}) SELECT i FROM n"
    )
    columns = ", ".join(c.name for c in work.columns if c.name not in ("id", "key"))
    with ledger.engine.begin() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO work ({columns}, key) SELECT {columns}, 'old ' || numbers.i "
            f"FROM work, ({numbers}) AS numbers WHERE work.id = {row.id}"
        )
        if postgres:
            connection.exec_driver_sql("ANALYZE work")  # as autovacuum would have by then

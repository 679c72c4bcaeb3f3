"""A backfill of N days of all daily tables: (a) here, (b) the obvious peer, (c) the floor.

a  `perennial market backfill`, a process of its own: one Dagster run, checks, ledger, derived tables
b  a loop over days with the stock tushare client, pandas, and upserts by primary key into one DuckDB file
c  the same bytes fetched concurrently, parsed to typed Arrow, written as zstd Parquet by month; no
   catalogue, no ledger, no checks, nothing derived

The source is on the same machine and answers at once, which no real one does: (a) and (b) are measured once
more, on fewer days, with answers that take 100 ms.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from itertools import groupby
from pathlib import Path

from domain.market.catalogue import Endpoint, catalogue
from sandbox.exchange import Exchange

ROOT = Path(__file__).resolve().parents[1]
TOKEN = "sandbox-unlimited"
LAST = date(2026, 11, 17)
FEW = 60
DISTANCE = 0.1


def run(count: int) -> dict[str, float]:
    days = _days(count)
    print(f"backfill of {len(days)} days × {len(catalogue().daily)} tables, {days[0]} to {days[-1]}")
    with tempfile.TemporaryDirectory() as folder, _source(Path(folder)) as url:
        _warm(url, days)  # the sandbox computes a day once: none of the three should pay for it
        ours, peak = _ours(url, days, Path(folder) / "a")
        peer = _timed(lambda: _peer(url, days, Path(folder) / "b.duckdb"))
        floor = _timed(lambda: _floor(url, days, Path(folder) / "c"))
        few = days[-FEW:]
        _answer_after(url, DISTANCE)
        far_ours, _ = _ours(url, few, Path(folder) / "far-a")
        far_peer = _timed(lambda: _peer(url, few, Path(folder) / "far-b.duckdb"))
    for name, seconds in (("a here", ours), ("b stock client loop", peer), ("c floor", floor)):
        print(f"  {name:<22}{seconds:8.1f} s")
    print(f"  peak memory of a      {peak / 1024:8.0f} MiB")
    print(
        f"  {len(few)} days, answers after {DISTANCE * 1000:.0f} ms: a {far_ours:.1f} s, b {far_peer:.1f} s"
    )
    return {
        "backfill_b_over_a": peer / ours,
        "backfill_b_over_a_with_distance": far_peer / far_ours,
        "backfill_a_over_c": ours / floor,
        "backfill_peak_gib": peak / 2**20,
    }


def _days(count: int) -> list[date]:
    return list(Exchange().open_days(date(LAST.year - 2, 1, 1), LAST))[-count:]


@contextmanager
def _source(folder: Path) -> Iterator[str]:
    """The sandbox in a process of its own, as a real source would be."""
    port_file = folder / "server.json"
    command = [sys.executable, "-m", "sandbox", "serve", "--port", "0", "--port-file", str(port_file)]
    server = subprocess.Popen(command, cwd=ROOT)
    try:
        while not port_file.exists():
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port_file.read_text().strip()}"
    finally:
        server.terminate()
        server.wait()


def _warm(url: str, days: list[date]) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda job: _post(url, *job), [(e, d) for d in days for e in catalogue().daily]))


def _answer_after(url: str, seconds: float) -> None:
    import requests

    fault = {"api": "*", "kind": "stall", "seconds": seconds}
    requests.post(f"{url}/_sandbox/faults", json=fault, timeout=60).raise_for_status()


def _timed(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _ours(url: str, days: list[date], home: Path) -> tuple[float, int]:
    environment = {
        **os.environ,
        "PERENNIAL_HOME": str(home),
        "PERENNIAL_SOURCE": "sandbox",
        "TUSHARE_URL": url,
        "TUSHARE_TOKEN": TOKEN,
    }

    def perennial(first: date, last: date) -> None:
        command = [sys.executable, "-m", "orchestration.cli", "market", "backfill", "--from", str(first)]
        subprocess.run(
            [*command, "--to", str(last)], cwd=ROOT, env=environment, check=True, capture_output=True
        )

    perennial(days[-1], days[-1])  # calendar and stock list, which the others do not fetch
    began = time.monotonic()
    perennial(days[0], days[-1])
    return time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def _peer(url: str, days: list[date], database: Path) -> None:
    import duckdb
    import tushare.pro.client as stock

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        setattr(stock.DataApi, "_DataApi__http_url", url)  # noqa: B010 - the stock client has no other way
        api = stock.DataApi(TOKEN, timeout=60)
        con = duckdb.connect(str(database))
        for endpoint in catalogue().daily:
            for day in days:
                frame = api.query(
                    endpoint.endpoint,
                    fields=",".join(endpoint.source_schema.names),
                    trade_date=f"{day:%Y%m%d}",
                )
                frame = frame.drop_duplicates(["ts_code", "trade_date"])  # one key per row, as upserts need
                con.register("frame", frame)
                if day == days[0]:
                    con.execute(f"CREATE TABLE {endpoint.name} AS SELECT * FROM frame LIMIT 0")
                    con.execute(f"ALTER TABLE {endpoint.name} ADD PRIMARY KEY (ts_code, trade_date)")
                con.execute(f"INSERT OR REPLACE INTO {endpoint.name} SELECT * FROM frame")
        con.close()


def _floor(url: str, days: list[date], folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    with ThreadPoolExecutor(4) as pool:
        for endpoint in catalogue().daily:
            for month, group in groupby(days, key=lambda d: f"{d:%Y-%m}"):
                parts = pool.map(lambda day, e=endpoint: _parse(e, _post(url, e, day)), list(group))
                table = pa.concat_tables(parts).sort_by(
                    [("trade_date", "ascending"), ("ts_code", "ascending")]
                )
                pq.write_table(table, folder / f"{endpoint.name}-{month}.parquet", compression="zstd")


def _post(url: str, endpoint: Endpoint, day: date) -> bytes:
    import requests

    session = _SESSIONS.setdefault(_thread(), requests.Session())
    body = {
        "api_name": endpoint.endpoint,
        "token": TOKEN,
        "params": {"trade_date": f"{day:%Y%m%d}"},
        "fields": ",".join(endpoint.source_schema.names),
    }
    return session.post(url, json=body, timeout=60).content


_SESSIONS: dict[int, object] = {}


def _thread() -> int:
    import threading

    return threading.get_ident()


def _parse(endpoint: Endpoint, body: bytes) -> object:
    from resources.tushare.decode import read_answer, read_rows, to_table
    from resources.tushare.request import TushareRequest

    request = TushareRequest(endpoint.endpoint, {}, schema=endpoint.source_schema)
    rows = read_rows(endpoint.endpoint, read_answer(endpoint.endpoint, body, str).data, str)
    return to_table(request, rows, str)

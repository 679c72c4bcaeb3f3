"""The HTTP API under load: 200 clients of streams and 50 requests a second against a `perennial api` process.

A third process changes work all the while. What is measured: errors, how long requests take, how long after a
change a stream says so. The second round has ten clients beside them that never read.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx

from domain.market.plan import FILL
from domain.shared.work import WorkRequest
from orchestration.services import open_ledger
from orchestration.settings import Settings
from resources.ledger.pipelines import new_pipeline_id
from tests.settings import make_settings

SECONDS = 60
STREAMS = 200
SILENT = 10
RATE = 50
PIPELINES = 20
ITEMS = 100
"""Work items of a pipeline: more than are done in the time."""
CHANGES = 20
"""Work items that are begun, or completed, in a second."""
PATHS = ("/pipelines/{pipeline}", "/sync/jobs/{job}", "/work?limit=20", "/pipelines?limit=20", "/healthz")


@dataclass
class Measured:
    requests: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    """From a change in the ledger until a stream said so, where it names its moment."""
    errors: list[str] = field(default_factory=list)
    ends: int = 0
    work: float = 0.0
    """CPU seconds of the server."""


def run() -> dict[str, float]:
    ratios: dict[str, float] = {}
    for name, silent in (("", 0), ("_beside_silent", SILENT)):
        found = _round(silent)
        figures = {
            "requests_p50": _percentile(found.requests, 50),
            "requests_p99": _percentile(found.requests, 99),
            "events_p50": _percentile(found.delays, 50),
            "events_p99": _percentile(found.delays, 99),
        }
        print(
            f"{STREAMS} streams{f', {silent} that never read' if silent else ''}: "
            f"{len(found.requests):,} requests, {len(found.delays):,} events, {found.ends} ends, "
            f"{len(found.errors)} errors {found.errors[:3] or ''}, {found.work:.0f} s of CPU"
        )
        print("   " + ", ".join(f"{what} {value * 1000:.0f} ms" for what, value in figures.items()))
        ratios |= {f"api_{what}_ms{name}": value * 1000 for what, value in figures.items()}
        ratios[f"api_work_seconds{name}"] = found.work
        ratios[f"api_errors{name}"] = len(found.errors) + STREAMS - found.ends
    return ratios


def _percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1] if len(values) > 1 else float("nan")


def _round(silent: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        settings = make_settings(home=Path(folder), source="sandbox", api_port=port)
        pipelines, jobs = _prepare(settings)
        with _serving(settings, port) as process:
            before = _work(process)
            found = asyncio.run(_measure(settings, port, pipelines, jobs, silent))
            found.work = _work(process) - before
            return found


def _work(process: int) -> float:
    """The user and system time of a process."""
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _prepare(settings: Settings) -> tuple[list[str], list[int]]:
    names = [new_pipeline_id() for _ in range(PIPELINES)]
    requests = [
        WorkRequest(FILL, f"normalized_daily:{number}-{item}", "f", pipelines=(name,))
        for item in range(ITEMS)
        for number, name in enumerate(names)
    ]
    with closing(open_ledger(settings, write=True)) as ledger:
        return names, [row.id for row in ledger.enqueue(requests).created]


@contextmanager
def _serving(settings: Settings, port: int) -> Iterator[int]:
    command = [sys.executable, "-m", "orchestration.cli", "api"]
    environment = {**os.environ, **settings.environment()}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{port}/healthz").raise_for_status()
                break
            except httpx.ConnectError:
                if process.poll() is not None:
                    raise
                time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


async def _measure(
    settings: Settings, port: int, pipelines: list[str], jobs: list[int], silent: int
) -> Measured:
    found = Measured()
    deaf = [_connect_and_never_read(port, pipelines[0]) for _ in range(silent)]
    # Half of them follow a pipeline, half a work item, which tells when it changed.
    paths = [f"/pipelines/{pipelines[n % PIPELINES]}/stream" for n in range(STREAMS // 2)]
    paths += [f"/sync/jobs/{jobs[n]}/stream" for n in range(STREAMS - len(paths))]
    streams = []
    for path in paths:
        streams.append(asyncio.create_task(_follow(port, path, found)))
        await asyncio.sleep(0.04)  # the rate of one address is limited
    program = f"from benchmarks.api import change; change({str(settings.home)!r}, {SECONDS})"
    changing = subprocess.Popen([sys.executable, "-c", program])
    begun = time.monotonic()
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        calls = []
        for number in range(SECONDS * RATE):
            await asyncio.sleep(max(0.0, begun + number / RATE - time.monotonic()))
            path = PATHS[number % len(PATHS)].format(
                pipeline=pipelines[number % PIPELINES], job=jobs[number % len(jobs)]
            )
            calls.append(asyncio.create_task(_request(client, path, found)))
        await asyncio.gather(*calls)
    await asyncio.to_thread(changing.wait)
    _, late = await asyncio.wait(streams, timeout=30)
    found.errors += ["a stream did not end within 30 s of its pipeline" for _ in late]
    for one in deaf:
        one.close()
    return found


async def _request(client: httpx.AsyncClient, path: str, found: Measured) -> None:
    begun = time.perf_counter()
    try:
        answer = await client.get(path)
    except httpx.HTTPError as error:
        found.errors.append(f"{path}: {type(error).__name__}")
        return
    found.requests.append(time.perf_counter() - begun)
    if answer.status_code != 200:
        found.errors.append(f"{path}: {answer.status_code}")


async def _follow(port: int, path: str, found: Measured) -> None:
    """Read a stream to its end: lines as they come, so that 200 clients are light."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    status = (await reader.readline()).decode()
    if " 200 " not in status:
        found.errors.append(f"{path}: {status.strip()}")
        return
    first, event = True, b""
    while line := await reader.readline():
        if line.startswith(b"event: "):
            event = line[7:].strip()
        if moment := re.match(rb'data: .*"updated_at":"([^"]+)"', line):
            changed = datetime.fromisoformat(moment[1].decode())
            if not first:
                found.delays.append((datetime.now(UTC) - changed).total_seconds())
            first = False
        if event == b"end" and line.strip() == b"":
            found.ends += 1
            break
    writer.close()


def _connect_and_never_read(port: int, pipeline: str) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.connect(("127.0.0.1", port))
    client.sendall(f"GET /pipelines/{pipeline}/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return client


def change(home: str, seconds: float) -> None:
    """Begin and complete work, evenly over all pipelines; at the end cancel what is left."""
    with closing(open_ledger(make_settings(home=Path(home), source="sandbox"))) as ledger:
        begun, number = time.monotonic(), 0
        while (now := time.monotonic() - begun) < seconds:
            for row in ledger.claim(FILL, holder="worker:bench", limit=1):
                ledger.complete(row)
            number += 1
            time.sleep(max(0.0, number / CHANGES - now))
        for row in ledger.find(status=("queued", "deferred", "running"), limit=None):
            ledger.cancel(row.id)

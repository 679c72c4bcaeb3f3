"""A whole Perennial that runs, and everything a person can do to it: the command, the UI's API, the sandbox.

Reads ledger and lake directly, as a second opinion on what the command prints.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from domain.market.plan import FILL
from domain.shared.table import Version
from domain.shared.work import Work
from orchestration.domains.market import market_settings
from orchestration.environments import child_environment
from orchestration.services import open_lake, open_ledger
from orchestration.settings import Settings
from tests.breaking import break_lake

DAILY = "normalized_daily"
COMMAND = Path(sys.executable).with_name("perennial")
Found = TypeVar("Found")


@dataclass
class Running:
    """`perennial up` in a process of its own. `said` has its lines."""

    settings: Settings
    extra: Mapping[str, str] = field(default_factory=dict)
    ticks_at: datetime | None = None
    """The daily schedule's first minute after the start."""
    said: list[str] = field(default_factory=list)
    stopped_in: float = 0.0
    """Seconds from Ctrl-C to its end."""

    def start(self) -> None:
        self.process = subprocess.Popen(
            [COMMAND, "up"],
            env=self.environment,
            cwd=self.settings.home.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        self.wait(lambda: any(line.startswith("Perennial is up") for line in self.said), 90, "it to come up")

    def stop(self) -> str:
        """Stop as Ctrl-C does; returns everything it printed."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        said = self.ended()
        self.stopped_in = time.monotonic() - began
        return said

    def ended(self) -> str:
        self.process.wait(timeout=40)
        self._reader.join(timeout=5)
        return "".join(self.said)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout:
            self.said.extend(iter(self.process.stdout.readline, ""))

    @property
    def environment(self) -> dict[str, str]:
        return {**child_environment(self.settings), **self.extra}

    def wait(self, found: Callable[[], Found], seconds: float, what: str) -> Found:
        """The first true answer of `found`; fails with the last lines of the log after `seconds`."""
        end = time.monotonic() + seconds
        while not (answer := found()):
            if time.monotonic() > end:
                raise AssertionError(f"waited {seconds:.0f} s in vain for {what}\n{''.join(self.said[-60:])}")
            if self.process.poll() is not None:
                raise AssertionError(f"it ended while waiting for {what}\n{''.join(self.said[-60:])}")
            time.sleep(0.25)
        return answer

    # What a person types ----------------------------------------------------------------------

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *arguments], env=self.environment, capture_output=True, text=True, timeout=120
        )

    def verdicts(self) -> dict[tuple[str, str], dict[str, Any]]:
        """`perennial plan market`, by table and partition."""
        done = self.command("plan", "market", "--json")
        assert done.returncode == 0, done.stderr
        return {(v["table"], v["partition"]): v for v in json.loads(done.stdout)["verdicts"]}

    def break_lake(self, *words: str, table: str = f"market.{DAILY}") -> None:
        break_lake(self.settings.home, table, *words)

    # What the browser and the sandbox's control answer ------------------------------------------

    def graphql(self, query: str, **variables: Any) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self.settings.ui_port}/graphql"
        answer = _request("POST", url, {"query": query, "variables": variables})
        assert not answer.get("errors"), json.dumps(answer["errors"], indent=1)[:2000]
        data: dict[str, Any] = answer["data"]
        return data

    @property
    def sandbox_url(self) -> str:
        return f"http://127.0.0.1:{market_settings(self.settings).sandbox_port}"

    def sandbox(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        return _request(method, f"{self.sandbox_url}/_sandbox/{path}", body)

    def runs(self, **only: Any) -> list[dict[str, Any]]:
        """Runs, the newest first, their tags as a dict."""
        found: list[dict[str, Any]] = self.graphql(_RUNS, filter=only)["runsOrError"]["results"]
        for run in found:
            run["tags"] = {tag["key"]: tag["value"] for tag in run["tags"]}
            run["tables"] = {key["path"][-1] for key in run["assetSelection"] or ()}
        return found

    def messages(self, run_id: str) -> list[str]:
        events = self.graphql(_LOG, run=run_id)["logsForRun"]["events"]
        return [event.get("message", "") for event in events]

    def switch_sensor(self, name: str, *, on: bool) -> None:
        selector = {
            "repositoryName": "__repository__",
            "repositoryLocationName": "perennial",
            "sensorName": name,
        }
        if on:
            self.graphql(_START_SENSOR, selector=selector)
            return
        sensor = self.graphql(_SENSOR, selector=selector)["sensorOrError"]
        self.graphql(_STOP_SENSOR, id=sensor["id"])

    # What is really there ----------------------------------------------------------------------

    def work(self, after: int = 0) -> list[Work]:
        """The ledger's rows of days with ids above `after`, the oldest first."""
        rows = open_ledger(self.settings).find(FILL, limit=None)
        return sorted((row for row in rows if row.id > after), key=lambda row: row.id)

    def newest_work(self) -> int:
        return max((row.id for row in self.work()), default=0)

    def versions(self, days: Sequence[str], table: str = DAILY) -> dict[str, Version]:
        return open_lake(self.settings).versions(f"market.{table}", days)

    def days(self) -> list[str]:
        """The days of the gap window whose prices are due, oldest first."""
        return sorted(
            partition
            for (table, partition), verdict in self.verdicts().items()
            if table == DAILY and verdict["reason_code"] != "early"
        )

    def settled(self, seconds: float = 240) -> None:
        """Wait until nothing is due and nothing runs."""

        def quiet() -> bool:
            busy = self.runs(statuses=["QUEUED", "NOT_STARTED", "STARTING", "STARTED"])
            return not busy and not any(v["due"] for v in self.verdicts().values())

        self.wait(quiet, seconds, "nothing to be due")


_RUNS = """query($filter: RunsFilter) { runsOrError(filter: $filter, limit: 200) { ... on Runs { results {
  runId status creationTime startTime endTime assetSelection { path } tags { key value } } } } }"""
_LOG = """query($run: ID!) { logsForRun(runId: $run) { ... on EventConnection { events {
  ... on MessageEvent { message } } } } }"""
_SENSOR = """query($selector: SensorSelector!) {
  sensorOrError(sensorSelector: $selector) { ... on Sensor { id } } }"""
_STOP_SENSOR = "mutation($id: String!) { stopSensor(id: $id) { __typename } }"
_START_SENSOR = """mutation($selector: SensorSelector!) {
  startSensor(sensorSelector: $selector) { __typename } }"""


def _request(method: str, url: str, body: object) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=60) as reply:
        answer: dict[str, Any] = json.load(reply)
    return answer

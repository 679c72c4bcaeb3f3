"""The round of two daemons: `perennial up`, a second Dagster daemon beside it over the same state, a schedule
that ticks, clicks, backfills by command, days taken away, maintenance and readers. Then all has to get quiet.

Dagster does not support a second daemon and says so; a service started twice has one all the same.
"""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from domain.market.trading import SHANGHAI
from hunts.companions import PARTING, companions
from hunts.house import House, kill_group
from hunts.races import HEAL, Crowd, Deed, told, unfinished
from hunts.rounds import Found, Ground, Round
from hunts.upkeep import OURS
from hunts.yardstick import Yardstick
from orchestration.cli.up import daemon_command, free_port
from orchestration.settings import PROJECT_ROOT
from tests.e2e.running import Running
from tests.settings import make_settings

WINDOW, LIMIT = 8, 2
"""Days the sensor looks back, and runs it starts at once: few, so that it is at it for long."""
TICK_AHEAD = timedelta(seconds=80)
"""How soon the daily schedule ticks, or up to a minute sooner: in the middle of it."""
SPREAD = 15.0
"""Seconds over which what happens at once is spread."""
HEALING = 300.0
LOOK_EVERY = 2.0
OUR_ERRORS = ("assets.", "domain.", "resources.")

ENTRY = re.compile(r"\n(?=(?:\w+ +\| )?\d{4}-\d\d-\d\d \d\d:)")
ONE_TICK = ("DagsterRunAlreadyExists", "UNIQUE constraint failed: runs.run_id")
"""Either daemon may take the other's unfinished tick for one to be resumed: the later one only complains."""

FETCHED = ("suspensions", "normalized_adj_factor", "normalized_daily", "normalized_daily_basic")
BY_DAY = (*FETCHED, "adjusted_daily", "coverage", "revisions")
CODE = {"repositoryName": "__repository__", "repositoryLocationName": "perennial"}
BUSY = ["QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING"]


def rounds(ground: Ground) -> dict[str, Round]:
    return {"daemons": lambda luck: daemons(ground.folder / "daemons", luck)}


def daemons(folder: Path, luck: random.Random, *, storms: int = 2) -> Found:
    """`storms` are times when everything happens at once, the first of them on an empty home."""
    folder.mkdir(exist_ok=True)
    found = Found()
    with _home(folder / "clean") as clean:
        seconds = _fill(clean)
        tick = datetime.now(SHANGHAI) + TICK_AHEAD
        with _home(folder / "up", tick) as house, _up(house, found) as running, _second_daemon(house, found):
            scene = _Scene(house, running, Yardstick(clean.market), luck, found)
            with companions(house, scene.yardstick, luck, found, seconds, losses=True), told(found):
                scene.play(storms)
            with told(found):
                found.complaints += unfinished(house)
        _fill(clean)  # a day that came due meanwhile is in both
        found.complaints += Yardstick(clean.market).complaints(house.market)
    return found


@contextmanager
def _home(place: Path, daily_at: datetime | None = None) -> Iterator[House]:
    at = daily_at or datetime.now(SHANGHAI)
    house = House.build(place, now=None)
    house.settings = make_settings(
        house.settings,
        ui_port=free_port(),
        sandbox_port=free_port(),
        gap_window_days=WINDOW,
        gap_limit=LIMIT,
        daily_at=at.time().replace(second=0, microsecond=0),
    )
    try:
        yield house
    finally:
        house.close()


def _fill(clean: House) -> float:
    """The seconds it took with nothing in the way."""
    began = time.monotonic()
    said = clean.run(*HEAL)
    if said.code != 0:
        raise RuntimeError(f"not even without trouble:\n{said.text}")
    return time.monotonic() - began


@contextmanager
def _up(house: House, found: Found) -> Iterator[Running]:
    running = Running(house.settings)
    try:
        running.start()
        yield running
    finally:
        if hasattr(running, "process") and running.process.poll() is None:
            running.stop()
        found.complaints += _traces("up", "".join(running.said))


@contextmanager
def _second_daemon(house: House, found: Found) -> Iterator[None]:
    command = daemon_command(house.settings, house.settings.dagster_home / "workspace.yaml")
    process, words = house.start(command=command.argv)
    try:
        yield
        if process.poll() is not None:
            found.complaints.append(f"the second daemon ended by itself with {process.returncode}")
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PARTING)
        except subprocess.TimeoutExpired:
            found.complaints.append("the second daemon did not end when told to")
        kill_group(process)
        found.complaints += _traces("the second daemon", words.read_text(errors="replace"))


def _traces(who: str, said: str) -> Iterator[str]:
    """Stack traces, each with the line it belongs to, but those of two daemons at one tick."""
    for entry in ENTRY.split(said):
        if "Traceback" in entry and not any(words in entry for words in ONE_TICK):
            yield f"{who} showed a traceback: {entry[:300]} … {entry[-1200:]}"


@dataclass
class _Scene:
    house: House
    running: Running
    yardstick: Yardstick
    luck: random.Random
    found: Found

    def play(self, storms: int) -> None:
        crowd = Crowd(self.house, self.yardstick, self.found)
        days = self.yardstick.clean.lake.partitions("market.normalized_daily")
        for _ in range(storms):
            losses = [self._loss(day) for day in self.luck.sample(days, 2)]
            deeds = [*losses, *self._clicks(days), *self._backfills(crowd, days)]
            crowd.play((self.luck.uniform(0, SPREAD), deed) for deed in deeds)
        began = time.monotonic()
        while not self._quiet():
            if time.monotonic() - began > HEALING:
                self.found.complaints.append(f"not quiet after {HEALING:.0f} s: {self._state()}")
                break
            crowd.reconcile()
            time.sleep(LOOK_EVERY)
        self.found.count(quiet_in=int(time.monotonic() - began))
        self._judge_runs()

    def _backfills(self, crowd: Crowd, days: Sequence[str]) -> list[Deed]:
        span = ("market", "backfill", "--from", days[0], "--to", days[-1])
        return [crowd.command(span), crowd.command((*span, "--force"))]

    def _clicks(self, days: Sequence[str]) -> list[Deed]:
        """All days as one backfill, one day of all tables, one table of one day, the night's care."""
        one, other = self.luck.choices(days, k=2)
        table = self.luck.choice(FETCHED)
        return [
            lambda: self._launch_backfill(days),
            lambda: self._launch([["market", name] for name in BY_DAY], one),
            lambda: self._launch([["market", table]], other),
            lambda: self._launch([["ops", "lake_maintenance"]]),
        ]

    def _loss(self, day: str) -> Deed:
        """Somebody with another engine, who knows none of our locks, takes a day away."""
        table = self.luck.choice(FETCHED)
        tool = [sys.executable, str(PROJECT_ROOT / "tests" / "tools" / "break_lake.py")]
        words = ["--home", str(self.house.home), f"--table=market.{table}", f"--drop-day={day}"]

        def take_away() -> None:
            # It comes too late for a table that moved on meanwhile, as any such hand does.
            for _ in range(5):
                if subprocess.run([*tool, *words], capture_output=True, check=False).returncode == 0:
                    self.found.count(lost=1)
                    return

        return take_away

    # What the dialogs send

    def _launch(self, assets: Sequence[Sequence[str]], partition: str | None = None) -> None:
        tags = [{"key": "dagster/partition", "value": partition}] if partition else []
        params = {
            "selector": {
                **CODE,
                "pipelineName": "__ASSET_JOB",
                "assetSelection": [{"path": path} for path in assets],
            },
            "mode": "default",
            "executionMetadata": {"tags": tags},
        }
        answer = self.running.graphql(_LAUNCH, params=params)["launchPipelineExecution"]
        self._clicked(answer, "LaunchRunSuccess")

    def _launch_backfill(self, days: Sequence[str]) -> None:
        params = {
            "assetSelection": [{"path": ["market", name]} for name in BY_DAY],
            "partitionNames": list(days),
            "tags": [],
        }
        answer = self.running.graphql(_BACKFILL, params=params)["launchPartitionBackfill"]
        self._clicked(answer, "LaunchBackfillSuccess")

    def _clicked(self, answer: dict[str, Any], wanted: str) -> None:
        self.found.count(clicks=1)
        if answer["__typename"] != wanted:
            self.found.complaints.append(f"a click was answered by {answer}")

    # Whether it is over

    def _quiet(self) -> bool:
        return not self._busy() and not self.house.market.ledger.running() and self.house.healthy()

    def _busy(self) -> list[tuple[str, str]]:
        backfills = self.running.graphql(_BACKFILLS)["partitionBackfillsOrError"]["results"]
        under_way = [(b["id"], b["status"]) for b in backfills if b["status"] in ("REQUESTED", "CANCELING")]
        runs = [run for run in self.running.runs(statuses=BUSY) if not OURS.keys() & run["tags"]]
        return under_way + [(run["runId"], run["status"]) for run in runs]

    def _state(self) -> str:
        waiting = self.house.market.ledger.find(status=("running", "queued", "deferred"), limit=None)
        return f"{self._busy()}, {[(w.key, w.status, w.reason_code, str(w.not_before)) for w in waiting]}"

    def _judge_runs(self) -> None:
        runs = self.running.runs()
        self.found.count(runs=len(runs))
        sent = Counter(run["tags"].get("perennial/dispatch") for run in runs)
        for dispatch, count in sent.items():
            if dispatch and count > 1:
                self.found.complaints.append(f"{count} runs were started for the dispatch {dispatch}")
        for run in runs:
            if run["status"] == "FAILURE":
                self.found.count(failed=1)
                if unclear := self._unclear(run["runId"]):
                    self.found.complaints.append(f"run {run['runId']} failed: {unclear}")

    def _unclear(self, run_id: str) -> list[str]:
        """The errors of a failed run that are none of ours: another run was at the same days, a click came
        before the stock list, a day was gone. Those say what to do, and the rest is done by another run."""
        events = self.running.graphql(_FAILURES, run=run_id)["logsForRun"]["events"]
        errors = [event["error"] for event in events if event.get("error")]
        behind = [(e["cause"] or e)["message"].strip() for e in errors]
        return [words for words in behind if not words.startswith(OUR_ERRORS)]


_LAUNCH = """mutation($params: ExecutionParams!) { launchPipelineExecution(executionParams: $params) {
  __typename ... on PythonError { message } } }"""
_BACKFILL = """mutation($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  __typename ... on PythonError { message } } }"""
_BACKFILLS = """{ partitionBackfillsOrError(limit: 50) { ... on PartitionBackfills {
  results { id status } } } }"""
_FAILURES = """query($run: ID!) { logsForRun(runId: $run) { ... on EventConnection { events {
  ... on ExecutionStepFailureEvent { error { message cause { message } } } } } } }"""

"""Rounds of `perennial up` in real time: its source misbehaves, or parts of it die, and sensors and schedules
alone have to get through. As under a service manager, `up` is started again when it has ended.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from domain.shared.error import PerennialError
from orchestration.cli.up import free_port
from tests.chaos.faults import SHARE, UNTRUE, WAITED_OUT, fault_kinds
from tests.chaos.home import Home, wait_until
from tests.chaos.market_checks import Baseline, MarketChecks, run_undisturbed
from tests.chaos.rounds import Findings, Round
from tests.e2e.running import Running
from tests.processes import command_line, started_by_up

FAULTS_SECONDS, HEAL_SECONDS, PAUSE = 150.0, 900.0, 5.0
VICTIMS = ("worker", "daemon", "both")
DEATHS = 3
MOMENT_SECONDS = 60.0
"""How long a moment to kill is waited for: with nothing left to fetch, it never comes."""
SETTINGS: dict[str, Any] = {"gap_limit": 6, "gap_window_days": 14}
NEEDS_A_PERSON_OR_HOURS = (
    *("bad_token", "no_permission", "no_permission_by_name"),
    *("hour_quota", "day_quota", "stall"),
)
_WORKER = re.compile(r"Started process for run \(pid: (\d+)\)")
UNFINISHED = ["QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING"]


def fault_rounds(base: Baseline) -> dict[str, Round]:
    return {"up-faults": partial(faulty_source, base.folder)}


def kill_rounds(base: Baseline, each: int) -> dict[str, Round]:
    """`each` rounds per victim."""
    return {
        f"up-{victim}-{n}": partial(kills, base.folder, victim)
        for n in range(1, each + 1)
        for victim in VICTIMS
    }


def faulty_source(folder: Path, luck: random.Random) -> Findings:
    left_out = {*NEEDS_A_PERSON_OR_HOURS, *WAITED_OUT, *UNTRUE}
    chosen = [kind for kind in fault_kinds() if kind.name not in left_out]
    luck.shuffle(chosen)
    with _started(folder) as up:
        share = SHARE / len(chosen)
        up.home.server.faults.add(*(rule for k in chosen for rule in k.rules(share, luck, lists=False)))
        up.watch(FAULTS_SECONDS)
        up.found.count(faults=sum(bool(call.faults) for call in up.home.server.calls.recent()))
        up.home.server.faults.clear()
        up.heal()
    return up.found


def kills(folder: Path, victim: str, luck: random.Random) -> Findings:
    with _started(folder) as up:
        for _ in range(DEATHS):
            up.kill(victim, luck)
        up.heal()
    return up.found


@contextmanager
def _started(folder: Path) -> Iterator[_Up]:
    """`up` on an empty home, and the same days fetched undisturbed on another one."""
    name = time.monotonic_ns()
    with Home.opened(folder / f"clean-{name}", now=None, **SETTINGS) as clean:
        run_undisturbed(clean, "market", "heal")
        ports: dict[str, Any] = {"ui_port": free_port(), "sandbox_port": free_port()}
        with Home.opened(folder / f"up-{name}", now=None, **SETTINGS, **ports) as home:
            up = _Up(home, MarketChecks(clean.market), Running(home.settings), Findings())
            up.running.start()
            try:
                yield up
            finally:
                up.end()


@dataclass
class _Up:
    home: Home
    checks: MarketChecks
    running: Running
    found: Findings

    def watch(self, seconds: float) -> bool:
        """Check again and again that nothing half done becomes data; whether all was well before the end."""

        def well() -> bool:
            self._check()
            return not self.home.server.faults.in_force() and self._well()

        return wait_until(well, seconds, every=PAUSE)

    def heal(self) -> None:
        began = time.monotonic()
        if not self.watch(HEAL_SECONDS):
            runs = [(r["runId"][:8], r["status"]) for r in self.running.runs(statuses=UNFINISHED)]
            work = [(w.key, w.status) for w in self.home.market.ledger.running()]
            self.found.complaints.append(f"not healthy after {HEAL_SECONDS:.0f} s: runs {runs}, work {work}")
        self.found.count(healed_in=int(time.monotonic() - began))
        self.found.complaints += self.checks.complaints(self.home.market)

    def kill(self, victim: str, luck: random.Random) -> None:
        """Kill in the middle of fetching: after some more calls, and a moment."""
        calls = self.home.server.calls
        call = calls.count() + luck.randint(1, 30)
        if not wait_until(lambda: calls.count() >= call, MOMENT_SECONDS):
            self.found.count(idle=1)
        time.sleep(luck.choice((0.0, luck.uniform(0, 0.2), luck.uniform(0, 2.0))))
        pids = self._victims(victim)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.found.count(**{victim: 1} if pids else {"missed": 1})
        self._check()
        if pids and victim != "worker":
            self.running.process.wait(timeout=60)
            self.running = Running(self.home.settings)
            self.running.start()

    def end(self) -> None:
        if self.running.process.poll() is None:
            self.running.stop()
        for pid in started_by_up(self.home.folder):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _victims(self, victim: str) -> list[int]:
        started = started_by_up(self.home.folder)
        if victim == "both":
            return [self.running.process.pid, *started]
        if victim == "daemon":
            return [pid for pid in started if "dagster._daemon" in command_line(pid)]
        runs = self.running.runs(statuses=["STARTED"])
        messages = [message for run in runs for message in self.running.messages(run["runId"])]
        return [int(pid) for pid in _WORKER.findall("\n".join(messages))]

    def _check(self) -> None:
        self.found.count(checked=1)
        with suppress(PerennialError):  # before there is a lake or a ledger
            self.found.complaints += self.checks.half_done(self.home.market)

    def _well(self) -> bool:
        if self.running.process.poll() is not None:
            self.found.complaints.append(f"up ended by itself: {''.join(self.running.said[-20:])}")
            return True
        busy = self.running.runs(statuses=UNFINISHED) or self.home.market.ledger.running()
        return not busy and self.home.healthy()

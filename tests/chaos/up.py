"""A round of `perennial up` in real time: its source misbehaves, parts of it die, and its sensors heal.

As under a service manager, `up` is started again when it has ended.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from domain.shared.error import PerennialError
from orchestration.cli.up import free_port
from tests.chaos.faults import SHARE, WAITED_OUT, fault_kinds
from tests.chaos.home import Home, wait_until
from tests.chaos.market_checks import Baseline, MarketChecks, run_undisturbed
from tests.chaos.rounds import Findings, Round
from tests.e2e.running import Running
from tests.processes import command_line, started_by_up

HEAL_SECONDS, MOMENT_SECONDS, PAUSE = 300.0, 30.0, 5.0
VICTIMS = ("worker", "daemon", "all")
SETTINGS: dict[str, Any] = {"gap_limit": 6, "gap_window_days": 14}
LEFT_OUT = {
    *("bad_token", "no_permission", "no_permission_by_name", "hour_quota", "day_quota", "stall"),
    *WAITED_OUT,
}
"""Faults that need a person or hours."""
UNFINISHED = ["QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING"]
_WORKER = re.compile(r"Started process for run \(pid: (\d+)\)")


def rounds(base: Baseline) -> dict[str, Round]:
    return {"up": partial(play, base)}


def play(base: Baseline, luck: random.Random) -> Findings:
    """Kill a worker, the daemon and everything, one after the other, then let it heal."""
    found = Findings()
    with Home.opened(base.folder / "up-clean", now=None, **SETTINGS) as clean:
        run_undisturbed(clean, "market", "heal")
        with _started(base, found, MarketChecks(clean.market)) as up:
            chosen = [kind for kind in fault_kinds() if kind.kind not in LEFT_OUT]
            faults = up.home.server.faults
            faults.add(*(rule for k in chosen for rule in k.rules(SHARE / len(chosen), luck)))
            for victim in luck.sample(VICTIMS, len(VICTIMS)):
                up.kill(victim, luck)
            faults.clear()
            up.home.expire_leases()  # a run that was killed before its first lease is silent for two minutes
            up.home.end_waits()
            began = time.monotonic()
            if not wait_until(up.is_well, HEAL_SECONDS, every=PAUSE):
                work = [(w.key, w.status) for w in up.home.market.ledger.running()]
                found.complaints.append(f"not healthy after {HEAL_SECONDS:.0f} s: work {work}")
            found.count(healed_in=int(time.monotonic() - began))
            found.complaints += up.checks.complaints(up.home.market)
    return found


class _Up:
    def __init__(self, home: Home, found: Findings, checks: MarketChecks) -> None:
        self.home, self.found, self.checks, self.running = home, found, checks, Running(home.settings)
        self.running.start()

    def kill(self, victim: str, luck: random.Random) -> None:
        """Kill after some more calls and a moment: in the middle of fetching, mostly."""
        calls = self.home.server.calls
        call = calls.count() + luck.randint(1, 30)
        wait_until(lambda: calls.count() >= call, MOMENT_SECONDS)
        time.sleep(luck.choice((0.0, luck.uniform(0, 0.2), luck.uniform(0, 2.0))))
        pids = self._processes(victim)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.found.count(**{victim if pids else "missed": 1})
        self._check_half_done()
        if victim != "worker":
            self.running.process.wait(timeout=60)
            self.running = Running(self.home.settings)
            self.running.start()

    def _processes(self, victim: str) -> list[int]:
        started = started_by_up(self.home.folder)
        if victim == "all":
            return [self.running.process.pid, *started]
        if victim == "daemon":
            return [pid for pid in started if "dagster._daemon" in command_line(pid)]
        runs = self.running.runs(statuses=["STARTED"])
        messages = [message for run in runs for message in self.running.messages(run["runId"])]
        return [int(pid) for pid in _WORKER.findall("\n".join(messages))]

    def is_well(self) -> bool:
        self._check_half_done()
        if self.running.process.poll() is not None:
            self.found.complaints.append(f"up ended by itself: {''.join(self.running.said[-20:])}")
            return True
        busy = self.running.runs(statuses=UNFINISHED) or self.home.market.ledger.running()
        return not busy and self.home.healthy()

    def _check_half_done(self) -> None:
        with suppress(PerennialError):  # before there is a lake or a ledger
            self.found.complaints += self.checks.half_done(self.home.market)


@contextmanager
def _started(base: Baseline, found: Findings, checks: MarketChecks) -> Iterator[_Up]:
    """`up` on an empty home; in the end none of its processes is left."""
    ports: dict[str, Any] = {"ui_port": free_port(), "sandbox_port": free_port(), "api_port": free_port()}
    with Home.opened(base.folder / "up", now=None, **SETTINGS, **ports) as home:
        up = _Up(home, found, checks)
        try:
            yield up
        finally:
            if up.running.process.poll() is None:
                up.running.stop()
            for pid in started_by_up(home.folder):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

"""Rounds in which parts of `perennial up` die: a run's worker, the daemon, or all of it at once.

As under a service manager, what stopped is started again; nobody does anything else.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from domain.shared.error import PerennialError
from hunts.house import House
from hunts.rounds import Found, Ground, Round
from hunts.yardstick import Yardstick
from orchestration.cli.up import free_port
from tests.e2e.running import Running
from tests.processes import started_by_up
from tests.settings import make_settings

VICTIMS = ("worker", "daemon", "both")
DEATHS = 3
A_WHILE = 60.0
"""How long a moment to strike is waited for: with nothing left to fetch, it never comes."""
HEALING = 400.0
WINDOW, DAYS = 14, 6
_WORKER = re.compile(r"Started process for run \(pid: (\d+)\)")
BUSY = ["QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING"]


def rounds(ground: Ground, each: int) -> dict[str, Round]:
    """`each` rounds per victim, on the newest days of today: `up` lives in real time."""
    return {f"up-{victim}-{n}": _round(ground, victim) for n in range(1, each + 1) for victim in VICTIMS}


def _round(ground: Ground, victim: str) -> Round:
    def round_(luck: random.Random) -> Found:
        found = Found()
        with _clean(ground) as yardstick, _scene(ground, yardstick, found) as scene:
            for _ in range(DEATHS):
                scene.kill(victim, luck)
            scene.heal()
        return found

    return round_


@contextmanager
def _clean(ground: Ground) -> Iterator[Yardstick]:
    """The same days, fetched with nothing in the way."""
    house = House.build(ground.folder / f"clean-{time.monotonic_ns()}", now=None)
    house.settings = make_settings(house.settings, gap_limit=DAYS, gap_window_days=WINDOW)
    try:
        if house.run("market", "heal").code != 0:
            raise RuntimeError("not even without trouble")
        yield Yardstick(house.market)
    finally:
        house.close()


@contextmanager
def _scene(ground: Ground, yardstick: Yardstick, found: Found) -> Iterator[_Scene]:
    house = House.build(ground.folder / f"up-{time.monotonic_ns()}", now=None)
    house.settings = make_settings(
        house.settings,
        ui_port=free_port(),
        sandbox_port=free_port(),
        gap_limit=DAYS,
        gap_window_days=WINDOW,
    )
    scene = _Scene(house, yardstick, Running(house.settings), found)
    try:
        scene.running.start()
        yield scene
    finally:
        scene.end()
        house.close()


@dataclass
class _Scene:
    house: House
    yardstick: Yardstick
    running: Running
    found: Found

    def kill(self, victim: str, luck: random.Random) -> None:
        """Strike in the middle of fetching: after some more calls, and a moment."""
        wanted = self.house.server.calls.count() + luck.randint(1, 30)
        if not _waited(lambda: self.house.server.calls.count() >= wanted, A_WHILE):
            self.found.count(idle=1)
        time.sleep(luck.choice((0.0, luck.uniform(0, 0.2), luck.uniform(0, 2.0))))
        hit = self._victims(victim)
        for pid in hit:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.found.count(**{victim: 1 if hit else 0, "missed": 0 if hit else 1})
        self._look()
        if hit and victim != "worker":
            self.running.process.wait(timeout=60)
            self.running = Running(self.house.settings)
            self.running.start()

    def heal(self) -> None:
        began = time.monotonic()
        if not _waited(self._well, HEALING):
            self.found.complaints.append(f"not healthy and quiet after {HEALING:.0f} s: {self._state()}")
        self.found.count(healed_in=int(time.monotonic() - began))
        self.found.complaints += self.yardstick.complaints(self.house.market)

    def end(self) -> None:
        if self.running.process.poll() is None:
            self.running.stop()
        for pid in started_by_up(self.house.home):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _victims(self, victim: str) -> list[int]:
        ours = started_by_up(self.house.home)
        if victim == "both":
            return [self.running.process.pid, *ours]
        if victim == "daemon":
            return [pid for pid in ours if "dagster._daemon" in _command_line(pid)]
        said = "\n".join(
            line
            for run in self.running.runs(statuses=["STARTED"])
            for line in self.running.messages(run["runId"])
        )
        return [int(pid) for pid in _WORKER.findall(said)]

    def _look(self) -> None:
        with suppress(PerennialError):  # killed before there was a lake or a ledger
            self.found.complaints += self.yardstick.half_done(self.house.market)

    def _well(self) -> bool:
        if self.running.process.poll() is not None:
            self.found.complaints.append(f"up ended by itself: {''.join(self.running.said[-20:])}")
            return True
        self._look()
        busy = self.running.runs(statuses=BUSY)
        return not busy and not self.house.market.ledger.running() and self.house.healthy()

    def _state(self) -> str:
        runs = [(r["runId"][:8], r["status"]) for r in self.running.runs(statuses=BUSY)]
        work = [(w.key, w.status) for w in self.house.market.ledger.running()]
        return f"runs {runs}, work {work}"


def _waited(seen: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not seen():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _command_line(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""

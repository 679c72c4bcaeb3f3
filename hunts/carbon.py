"""Rounds in which many upload to one home at once, and in which a file comes while its year is summed.

Nothing dies here: `carbon_kills.py` does that.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from domain.carbon.tables import REPORTS
from hunts.carbon_files import YEARS, Desk, Sheet
from hunts.carbon_ground import CarbonGround, Scene
from hunts.carbon_truth import write_possible
from hunts.carbon_yardstick import newest_work, sums_beyond_need
from hunts.companions import farewell
from hunts.house import kill_group
from hunts.races import has_postgres, judged, told
from hunts.rounds import Found, Round
from tests.postgres import running_server

PROCESSES = 8
READERS = 2
DEADLINE = 300.0
"""Seconds for commands that have no reason to wait: one of them alone does it all in a tenth of that."""
HEAL = ("carbon", "heal")
SUM_TAKES = 0.06
"""Seconds from its claim to its end, about. Who is stopped later has summed already: nothing was tried."""
LONGEST_STOP = 40.0
"""Seconds a sum is held up for files to come, and a quarter of it more: its lease is longer."""


Started = tuple[Sequence[str], subprocess.Popen[bytes], Path]
"""The words of a command, its process, and where it says what it says."""
Play = Callable[[CarbonGround, random.Random, str], Found]


def rounds(ground: CarbonGround, number: int) -> dict[str, Round]:
    plays: dict[str, Play] = {"crowd": crowd, "burst": burst, "landing": landing}
    return on_both(ground, {f"{name}-{n}": plays[name] for n in range(1, number + 1) for name in plays})


def on_both(ground: CarbonGround, plays: Mapping[str, Play]) -> dict[str, Round]:
    """On SQLite, and where there is one on Postgres too."""

    def on_postgres(play: Play, luck: random.Random) -> Found:
        with running_server() as server:
            return play(ground, luck, server.url("postgres"))

    made: dict[str, Round] = {name: partial(_on_files, ground, play) for name, play in plays.items()}
    if has_postgres():
        made |= {f"{name}-postgres": partial(on_postgres, play) for name, play in plays.items()}
    return made


def _on_files(ground: CarbonGround, play: Play, luck: random.Random) -> Found:
    return play(ground, luck, "")


def crowd(
    ground: CarbonGround, luck: random.Random, database_url: str = "", processes: int = PROCESSES
) -> Found:
    """Commands at once, of which all but two bring files, with readers throughout. What they leave is whole
    without anybody's help; half of the homes are empty at first."""
    found, desk = Found(), Desk(luck)
    with ground.scene(found, database_url) as scene:
        before = desk.furniture()
        before = before if luck.random() < 0.5 else [s for s in before if s.kind == "units"]
        scene.furnish(before)
        coming = [[desk.anything()] for _ in range(processes - 2)]
        for sheets in coming:
            if sheets[0].kind == "factors" and luck.random() < 0.7:
                sheets.append(_another(desk, sheets[0]))
        commands = [(*scene.words(*sheets), "--wait") for sheets in coming]
        commands += [HEAL, HEAL]
        luck.shuffle(commands)
        with readers(scene, before, [s for sheets in coming for s in sheets], luck):
            spread = luck.choice((0.0, 0.0, 4.0))
            started = []
            for words in commands:
                started.append((words, *scene.house.start(*words)))
                time.sleep(luck.uniform(0, spread / processes))
            _await(found, started)
        _all_is_done(scene)
        scene.heal()
        scene.judge()
    return found


def burst(ground: CarbonGround, luck: random.Random, database_url: str = "") -> Found:
    """Eight commands upload at once and wait for nothing; then several heal at once. Every year is summed
    once, for all of them."""
    found, desk = Found(), Desk(luck)
    with ground.scene(found, database_url) as scene:
        before = desk.furniture()
        scene.furnish(before)
        since = newest_work(scene.house.carbon)
        coming = [desk.anything() for _ in range(PROCESSES)]
        with readers(scene, before, coming, luck):
            _together(scene, [scene.words(sheet) for sheet in coming])
            _together(scene, [HEAL] * luck.randint(2, 4))
        _all_is_done(scene)
        scene.heal()
        with told(found):
            for year in YEARS:
                found.complaints += sums_beyond_need(scene.house.carbon, year, since)
        scene.judge()
    return found


def landing(ground: CarbonGround, luck: random.Random, database_url: str = "") -> Found:
    """Files come in, and are calculated, while their year is being summed: whoever sums is stopped meanwhile,
    at whatever instruction it is."""
    found, desk = Found(), Desk(luck)
    with ground.scene(found, database_url) as scene:
        before = desk.furniture()
        scene.furnish(before)
        since = newest_work(scene.house.carbon)
        year = YEARS[-1]
        first = [desk.factors(year, ("train", "paper")), desk.data(year, "hotel")]
        later = [desk.factors(year, ("paper", "electricity")) for _ in range(luck.randint(1, 2))]
        with readers(scene, before, [*first, *later], luck):
            scene.put(first)
            summing = [(HEAL, *scene.house.start(*HEAL))]
            with _stopped(scene, summing[0][1], f"{REPORTS.table}:{year}", luck):
                started = [(words, *scene.house.start(*words)) for words in _uploads(scene, later)]
                wanted = len(before) + len(first) + len(later)
                landed = bool(found.told["stopped"]) and _landed(scene, wanted)
                ended = time.monotonic() + luck.uniform(0, LONGEST_STOP / 4)
                while time.monotonic() < ended and any(p.poll() is None for _, p, _ in started):
                    time.sleep(0.05)
            _await(found, [*summing, *started])
        found.count(landed=int(landed))
        _all_is_done(scene)
        scene.heal()
        if landed:  # else they came when it was summed, and it is summed again
            with told(found):
                found.complaints += sums_beyond_need(scene.house.carbon, year, since)
        scene.judge()
    return found


def _landed(scene: Scene, wanted: int) -> bool:
    """Whether all files have come in while the sum is held up."""
    uploads, ended = scene.house.carbon.store.uploads, time.monotonic() + LONGEST_STOP
    while time.monotonic() < ended and len(uploads.find(accepted=True)) < wanted:
        time.sleep(0.05)
    return len(uploads.find(accepted=True)) >= wanted


def _another(desk: Desk, like: Sheet) -> Sheet:
    """A second file of factors for the same command. Of units and data the two would be of one place, and a
    command takes one of those."""
    return desk.factors(like.year, sorted({row["data_entry_type"] for row in like.rows()}))


def _uploads(scene: Scene, sheets: Sequence[Sheet]) -> Iterator[tuple[str, ...]]:
    return ((*scene.words(sheet), "--wait") for sheet in sheets)


@contextmanager
def _stopped(scene: Scene, process: subprocess.Popen[bytes], key: str, luck: random.Random) -> Iterator[None]:
    """The process is stopped some moment after it has begun this work, for as long as the body lasts."""
    ledger = scene.house.carbon.ledger
    while process.poll() is None and key not in {row.key for row in ledger.running()}:
        time.sleep(0.001)
    time.sleep(luck.uniform(0, SUM_TAKES))
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGSTOP)
    scene.found.count(stopped=int(key in {row.key for row in ledger.running()}))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGCONT)


def _together(scene: Scene, commands: Sequence[Sequence[str]]) -> None:
    _await(scene.found, [(words, *scene.house.start(*words)) for words in commands])


def _await(found: Found, started: Sequence[Started]) -> None:
    """Wait for them, and judge how they ended."""
    ended = time.monotonic() + DEADLINE
    try:
        while time.monotonic() < ended and any(process.poll() is None for _, process, _ in started):
            time.sleep(0.1)
        for words, process, said in started:
            found.complaints += judged(" ".join(words), process, said)
            found.count(commands=1, refused=int(process.returncode == 1))
    finally:
        for _, process, _ in started:
            kill_group(process)


def _all_is_done(scene: Scene) -> None:
    """Everybody has ended, nobody died: whoever ended last has left nothing to do."""
    carbon = scene.house.carbon
    for row in carbon.ledger.find(status=("running", "queued", "deferred"), limit=None):
        why = f"{row.reason_code}: {row.error}"
        scene.found.complaints.append(f"work {row.id} {row.key} is {row.status}, all have ended ({why})")
    if due := [v.key for v in carbon.plan().due]:
        scene.found.complaints.append(f"all have ended, and {due} are due")


@contextmanager
def readers(
    scene: Scene, before: Sequence[Sheet], coming: Sequence[Sheet], luck: random.Random
) -> Iterator[None]:
    """Some who read reports as long as the body lasts; what they met goes to the scene."""
    place = scene.house.home.with_name(f"{scene.house.home.name}-possible.json")
    write_possible(place, before, coming)
    name = "hunts.carbon_reading"
    started = [
        scene.house.start(str(place), str(luck.randrange(2**31)), command=(sys.executable, "-m", name))
        for _ in range(READERS)
    ]
    try:
        yield
    finally:
        for process, _ in started:
            process.send_signal(signal.SIGTERM)
        for process, words in started:
            farewell(name, process, words, scene.found)

"""Rounds in which those who take in, calculate and sum die: kill -9 of a whole process group, at moments
nobody chose, several in a row on one home."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from domain.carbon.jobs import AGGREGATION, DATA_INGEST, FACTOR_INGEST, RECALCULATION
from domain.shared.error import PerennialError
from hunts.carbon import HEAL, Play, on_both
from hunts.carbon_files import YEARS, Desk
from hunts.carbon_ground import CarbonGround, Scene
from hunts.carbon_yardstick import doubled_keys
from hunts.house import kill_group
from hunts.races import REASON
from hunts.rounds import Found, Round
from services.carbon.report import report_of

PATIENCE = 60.0
"""Seconds a moment to strike is waited for: with nothing left to do, it never comes."""
SPAN = 6.0
"""About what a command takes from its start to its end."""
MOMENTS = ("at_time", "at_commit", "at_claim", "at_event")
KINDS = (FACTOR_INGEST, DATA_INGEST, RECALCULATION, AGGREGATION)


def rounds(ground: CarbonGround, number: int, seed: int) -> dict[str, Round]:
    """Chains of one to four kills on one home."""
    luck = random.Random(f"{seed} chains")  # noqa: S311 - luck, not secrets
    lengths = [luck.choice((1, 2, 3, 4)) for _ in range(number)]
    return on_both(ground, {f"kill-{n}x{length}": chain(length) for n, length in enumerate(lengths, 1)})


def chain(length: int) -> Play:
    def play(ground: CarbonGround, luck: random.Random, database_url: str = "") -> Found:
        found, desk = Found(), Desk(luck)
        with ground.scene(found, database_url) as scene:
            before = desk.furniture()
            scene.furnish(before if luck.random() < 0.7 else before[: len(YEARS)])
            for _ in range(length):
                _strike(scene, desk, luck)
                _look(scene)
                if luck.random() < 0.5:
                    _impatient(scene)
                if luck.random() < 0.3:
                    scene.house.lease_runs_out()
                    scene.house.waits_run_out()
            scene.heal()
            scene.judge()
        return found

    return play


def _strike(scene: Scene, desk: Desk, luck: random.Random) -> None:
    """One to three commands at once; one of them is killed, or all are."""
    commands = [(*scene.words(desk.anything(partly=True)), "--wait") for _ in range(luck.randint(1, 3))]
    if luck.random() < 0.3:
        commands.append(HEAL)
    name, when = _moment(scene, luck)
    started = [scene.house.start(*words) for words in commands]
    processes = [process for process, _ in started]
    victims = processes if luck.random() < 0.5 else [luck.choice(processes)]
    try:
        ended = time.monotonic() + PATIENCE
        while time.monotonic() < ended and any(p.poll() is None for p in victims) and not when():
            time.sleep(0.002)
        hit = sum(_is_killed(process) for process in victims)
        for process in processes:
            process.wait(timeout=10 * PATIENCE)
    finally:
        for process in processes:
            kill_group(process)
    scene.deaths += hit
    scene.found.count(kills=hit, too_late=len(victims) - hit, **{name: 1})
    for process, said in started:
        text = said.read_text(errors="replace")
        if "Traceback" in text:
            scene.found.complaints.append(f"ended with {process.returncode} and a traceback: {text[-900:]}")


def _is_killed(process: subprocess.Popen[bytes]) -> bool:
    lived = process.poll() is None
    kill_group(process)
    return lived


def _moment(scene: Scene, luck: random.Random) -> tuple[str, Callable[[], bool]]:
    """When to kill: after some time, some commit, some claim, or some event of the ledger."""
    kind = luck.choice(MOMENTS)
    grace = luck.choice((0.0, luck.uniform(0, 0.05), luck.uniform(0, 0.5)))
    if kind == "at_time":
        return kind, _after(luck.uniform(0.5, SPAN), lambda: True)
    if kind == "at_commit":
        folder = scene.house.home / "lake" / "warehouse" / "carbon"
        wanted = _commits(folder) + luck.randint(1, 5)
        return kind, _after(grace, lambda: _commits(folder) >= wanted)
    ledger = scene.house.carbon.ledger
    if kind == "at_claim":
        work = luck.choice(KINDS)
        return kind, _after(grace, lambda: any(row.kind == work for row in ledger.running()))
    done = len(ledger.find(status="completed", limit=None)) + luck.randint(1, 4)
    return kind, _after(grace, lambda: len(ledger.find(status="completed", limit=None)) >= done)


def _after(seconds: float, seen: Callable[[], bool]) -> Callable[[], bool]:
    """True from `seconds` after `seen` was true for the first time."""
    since: list[float] = []

    def when() -> bool:
        if not since and seen():
            since.append(time.monotonic())
        return bool(since) and time.monotonic() - since[0] >= seconds

    return when


def _commits(folder: Path) -> int:
    return sum(1 for _ in folder.glob("*/metadata/*.metadata.json"))


def _look(scene: Scene) -> None:
    """Right after a death: every report can be read and adds up, and no key is there twice."""
    scene.found.complaints += _unreadable(scene)
    scene.found.complaints += doubled_keys(scene.house.carbon)


def _unreadable(scene: Scene) -> Iterator[str]:
    for year in YEARS:
        try:
            found = report_of(scene.house.carbon, year)
        except PerennialError as error:
            if error.reason_code != "no_report":
                yield f"after a death the report of {year} cannot be read: {error.message}"
            continue
        top = sum(row["total_mg"] for row in found.units if row["unit_id"] == "UNI")
        if top != found.total_mg:
            yield f"after a death UNI has {top} mg in {year}, and its units {found.total_mg}"


def _impatient(scene: Scene) -> None:
    """Somebody heals at once. The dead are known to be dead: nothing has to be waited for but what died
    again and again, or before it began, and that is said."""
    said = scene.house.run(*HEAL)
    scene.found.count(impatient=1, impatient_done=int(said.code == 0))
    if "Traceback" in said.text or said.code not in (0, 1):
        scene.found.complaints.append(f"healing after a death ended with {said.code}: {said.text[-600:]}")
    elif said.code and not REASON.search(said.text):
        scene.found.complaints.append(f"healing after a death ended with 1 and says no reason: {said.text}")
    running = scene.house.carbon.ledger.running()
    if running:
        held = [(row.key, row.run_id) for row in running]
        scene.found.complaints.append(f"after healing work is still in dead hands: {held}")

"""Rounds in which the machine fails: a disk that fills up, a folder turned read-only, a clock that jumps."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

from hunts.house import COMMAND, House
from hunts.kills import Acknowledged, last
from hunts.rounds import Found, Ground, Round

A_DAY = 86_400
NAMESPACE = ("unshare", "-rm", "sh", "-c")
"""Mounts made in it are nobody else's, and go with it."""


def rounds(ground: Ground) -> dict[str, Round]:
    disks = {
        "full-disk": lambda luck: _full_disk(ground, luck),
        "read-only-warehouse": lambda luck: _read_only(ground, "lake/warehouse", luck),
        "read-only-lake": lambda luck: _read_only(ground, "lake", luck),
    }
    return {
        **(disks if can_mount() else {}),
        "clock-a-day-on": lambda luck: _jump(ground, A_DAY, luck),
        "clock-a-day-back": lambda luck: _jump(ground, -A_DAY, luck),
        "clock-of-a-thief": lambda luck: _thief(ground, luck),
    }


def can_mount() -> bool:
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return shutil.which("unshare") is not None and _works(probe)


def _works(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _full_disk(ground: Ground, luck: random.Random) -> Found:
    """An empty home on a disk that is smaller than what has to go there; later it is a large one."""
    found = Found()
    with ground.house() as house:
        needed = sum(f.stat().st_size for f in (ground.folder / "clean").rglob("*") if f.is_file())
        size = int(needed * luck.uniform(0.25, 0.95)) // 1024
        kept = house.home.with_name(f"{house.home.name}-kept")
        house.home.mkdir()
        script = (
            f"mount -t tmpfs -o size={size}k tmpfs {house.home} || exit 99\n"
            f"{_words(ground.backfill)}; code=$?\n"
            f"{_words(('status', '--json'))} > {_answer(house)}\n"
            f"cp -a {house.home} {kept} && exit $code\n"
        )
        said = house.run(script, command=NAMESPACE)
        shutil.rmtree(house.home)
        kept.rename(house.home)
        found.count(kib=size, code=said.code)
        _told(house, said.text, found, ("disk_full", "no space", "disk is full", "disk i/o"))
        house.lease_runs_out()
        last(ground, house, {}, found)
    return found


def _read_only(ground: Ground, folder: str, luck: random.Random) -> Found:
    """A folder turns read-only in the middle of a run, and is writable again afterwards."""
    found = Found()
    with ground.house() as house:
        place, signal = house.home / folder, house.home.with_name("now")
        script = (
            f"{_words(ground.backfill)} & pid=$!\n"
            f"while [ ! -e {signal} ] && kill -0 $pid; do sleep 0.02; done\n"
            f"mount --bind {place} {place} && mount -o remount,bind,ro {place} || exit 99\n"
            f"wait $pid; code=$?\n"
            f"{_words(('status', '--json'))} > {_answer(house)}\n"
            "exit $code\n"
        )
        wanted = luck.randint(16, 16 + 4 * len(ground.days))  # from the first day's call to the last one's
        process, words = house.start(script, command=NAMESPACE)
        while process.poll() is None and house.server.calls.count() < wanted:
            time.sleep(0.005)
        signal.touch()
        process.wait()
        signal.unlink()
        found.count(after_calls=wanted, code=process.returncode)
        _told(house, words.read_text(), found, ("read_only", "read-only"))
        house.lease_runs_out()
        last(ground, house, {}, found)
    return found


def _jump(ground: Ground, seconds: int, luck: random.Random) -> Found:
    """A clock that jumps while nobody else is there changes nothing at all."""
    found = Found()
    with ground.house() as house:
        readings = luck.randint(1, 20 + 4 * len(ground.days))
        said = house.run(*ground.backfill, command=_jumping(seconds, readings))
        found.count(readings=readings)
        if said.code != 0:
            found.complaints.append(f"ended with {said.code} because the clock jumped: {said.text[-600:]}")
        last(ground, house, {}, found)
    return found


def _thief(ground: Ground, luck: random.Random) -> Found:
    """A second worker believes it is tomorrow and takes the work of one that lives."""
    found = Found()
    known: Acknowledged = {}
    with ground.house() as house:
        wanted = luck.randint(16, 16 + 4 * len(ground.days))
        process, words = house.start(*ground.backfill)
        while process.poll() is None and house.server.calls.count() < wanted:
            time.sleep(0.005)
        thief = house.run("market", "heal", command=_jumping(A_DAY, 0))
        process.wait()
        found.count(after_calls=wanted, robbed=process.returncode, thief=thief.code)
        for who, text in (("the robbed", words.read_text()), ("the thief", thief.text)):
            if "Traceback" in text:
                found.complaints.append(f"{who} showed a traceback: {text[-600:]}")
        house.lease_runs_out()
        last(ground, house, known, found)
    return found


def _told(house: House, said: str, found: Found, reasons: tuple[str, ...]) -> None:
    """The command must have failed with words, and status must name the cause."""
    if found.told["code"] == 0:
        found.count(harmless=1)  # it was over, or had all it needed, before the accident
        return
    if found.told["code"] != 1:
        found.complaints.append(f"the command ended with {found.told['code']}: {said[-600:]}")
    if "Traceback" in said:
        found.complaints.append(f"the command showed a traceback: {said[-600:]}")
    text = _answer(house).read_text()
    try:
        findings = json.loads(text)["findings"]
    except (json.JSONDecodeError, KeyError):
        found.complaints.append(f"status --json gave no document: {text[-300:]!r} {said[-600:]}")
        return
    words = json.dumps(findings).lower()
    if not any(reason in words for reason in reasons):
        told = sorted({f"{f['reason_code']}: {f['reason'][:100]}" for f in findings})
        found.complaints.append(f"status names no {reasons[0]}: {told[:4]}; the command: {said[-400:]}")


def _answer(house: House) -> Path:
    return house.home.with_name(f"{house.home.name}-status.json")


def _words(arguments: tuple[str, ...]) -> str:
    return " ".join((*COMMAND, *arguments))


def _jumping(seconds: int, readings: int) -> tuple[str, ...]:
    return (sys.executable, "-m", "hunts.jumping", str(seconds), str(readings))

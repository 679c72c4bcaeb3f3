"""Those who are there all the while: processes that go on until told to stop, then say what they met."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from hunts.house import House, kill_group
from hunts.rounds import Found
from hunts.yardstick import Yardstick

PARTING = 60.0
"""Seconds to end what they are at."""


@contextmanager
def companions(
    house: House,
    yardstick: Yardstick,
    luck: random.Random,
    found: Found,
    undisturbed: float,
    *,
    losses: bool = False,
) -> Iterator[None]:
    """Two readers and the maintenance, as long as the body lasts; what they met goes to `found`.

    `undisturbed` are the seconds in which the home is filled with nobody beside: they say how fast this
    machine is, and so how long a snapshot is kept. What a home lives through in weeks passes in a round.
    `losses`: days are taken away meanwhile.
    """
    kept = max(10.0, 1.5 * undisturbed)
    whole = write_whole(yardstick, house.home.with_name(f"{house.home.name}-whole.json"))
    reader = ("hunts.reading", str(whole), str(kept), "losses" if losses else "none")
    wanted = [reader, reader, ("hunts.upkeep", str(kept))]
    started = [
        (name, house.start(*words, str(luck.randrange(2**31)), command=(sys.executable, "-m", name)))
        for name, *words in wanted
    ]
    try:
        yield
    finally:
        for _, (process, _) in started:
            process.send_signal(signal.SIGTERM)
        for name, (process, words) in started:
            farewell(name, process, words, found)


def write_whole(yardstick: Yardstick, place: Path) -> Path:
    """What each partition of a clean home is, for readers in other processes."""
    lake = yardstick.clean.lake
    held = {name: lake.versions(name, lake.partitions(name)) for name in lake.tables}
    place.write_text(json.dumps({name: {p: str(v) for p, v in some.items()} for name, some in held.items()}))
    return place


def farewell(name: str, process: subprocess.Popen[bytes], words: Path, found: Found) -> None:
    try:
        process.wait(PARTING)
    except subprocess.TimeoutExpired:
        found.complaints.append(f"{name} did not end within {PARTING:.0f} s")
    finally:
        kill_group(process)
    said = words.read_text(errors="replace").strip()
    try:
        report = json.loads(said.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        found.complaints.append(f"{name} ended with {process.returncode} and no report: {said[-600:]}")
        return
    found.count(**report["told"])
    found.complaints += report["complaints"]


# On their side


def until_told(*loops: Callable[[threading.Event], None]) -> None:
    """Run these, each in a thread, until the signal to stop sets their event.

    Not in the main thread: Dagster makes an interrupt of the signal there.
    """
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    threads = [threading.Thread(target=loop, args=(told,)) for loop in loops]
    for thread in threads:
        thread.start()
    parent = os.getppid()
    while not told.wait(1.0):
        if os.getppid() != parent:
            told.set()  # the hunt was killed: nobody will tell
    for thread in threads:
        thread.join()


def report(told: Mapping[str, int], complaints: Sequence[str]) -> None:
    print(json.dumps({"told": dict(told), "complaints": list(complaints)}), flush=True)  # noqa: T201

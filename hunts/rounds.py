"""What a hunt is made of: rounds with a name, luck of their own, and a line each."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from hunts.house import House
from hunts.yardstick import Yardstick

SHOWN = 8


@dataclass
class Ground:
    """Where a hunt takes place: the days, the home filled without trouble, room for the others."""

    folder: Path
    days: list[date]
    backfill: tuple[str, ...]
    yardstick: Yardstick
    seconds: float
    """What an undisturbed backfill takes here."""
    _homes: int = 0

    @contextmanager
    def house(self, *, timeout: float = 30.0) -> Iterator[House]:
        """An empty home, gone afterwards."""
        self._homes += 1
        house = House.build(self.folder / f"home-{self._homes}", timeout=timeout)
        try:
            yield house
        finally:
            house.close()
            shutil.rmtree(house.home, ignore_errors=True)


@contextmanager
def ground(days: list[date]) -> Iterator[Ground]:
    with tempfile.TemporaryDirectory(prefix="hunts-") as folder:
        clean = House.build(Path(folder) / "clean")
        backfill = ("market", "backfill", "--from", str(days[0]), "--to", str(days[-1]))
        try:
            began = time.monotonic()
            filled = clean.run(*backfill)
            seconds = time.monotonic() - began
            if filled.code != 0 or not clean.healthy():
                raise RuntimeError(f"not even without trouble:\n{filled.text}")
            yield Ground(Path(folder), days, backfill, Yardstick(clean.market), seconds)
        finally:
            clean.close()


@dataclass
class Found:
    """What one round found; `told` are numbers for its line."""

    complaints: list[str] = field(default_factory=list)
    told: dict[str, int] = field(default_factory=dict)

    def count(self, **more: int) -> None:
        for name, number in more.items():
            self.told[name] = self.told.get(name, 0) + number


Round = Callable[[random.Random], Found]


def hunt(what: str, rounds: Mapping[str, Round], seed: int, say: Callable[[str], None] | None = None) -> int:
    """Play the rounds; returns how many of them complained."""
    say = say or (lambda line: print(line, flush=True))  # noqa: T201 - this is a command's own voice
    began, bad, told = time.monotonic(), [], Found()
    for number, (name, play) in enumerate(rounds.items(), 1):
        started = time.monotonic()
        found = play(random.Random(f"{seed} {name}"))  # noqa: S311 - luck, not secrets
        told.count(**found.told)
        numbers = " ".join(f"{key}={value}" for key, value in found.told.items())
        verdict = "WRONG" if found.complaints else "ok"
        say(
            f"{what} {number}/{len(rounds)} {name} seed={seed} {verdict} {numbers} "
            f"{time.monotonic() - started:.1f} s"
        )
        different = list(dict.fromkeys(found.complaints))
        for complaint in different[:SHOWN]:
            say(f"    {complaint}")
        if len(different) > SHOWN:
            say(f"    and {len(different) - SHOWN} more")
        if found.complaints:
            bad.append(name)
    seconds = round(time.monotonic() - began, 1)
    summary = {"hunt": what, "seed": seed, "rounds": len(rounds), "wrong": bad, "seconds": seconds}
    say(json.dumps({**summary, **told.told}))
    return len(bad)


def fresh_seed() -> int:
    return random.SystemRandom().randrange(1_000_000)

"""Rounds in which everybody is there at once: backfills, daily looks and healing over overlapping days, with
maintenance in the middle and readers throughout.

Nothing dies and the source is well: whatever a reader cannot read, or a command cannot explain, is wrong.
"""

from __future__ import annotations

import random
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import dagster as dg

from domain.shared.error import PerennialError
from hunts.companions import companions
from hunts.house import House, kill_group
from hunts.kills import last
from hunts.rounds import Found, Ground, Round
from hunts.yardstick import Yardstick
from orchestration.instance import open_instance
from sensors.unfinished import UNFINISHED
from tests.postgres import PostgresMissing, find_binaries, running_server

DAILY, HEAL = ("market", "daily"), ("market", "heal")
FIRST = (*(("pools", "apply"),) * 3, ("migrate",), HEAL, DAILY)
HOMES = 3
LOOKS = (("check", "market"), ("sql", "SELECT count(*) FROM market.adjusted_daily"))
DEADLINE = 400.0
"""Seconds for commands that have no reason to wait: the crowd's work is one backfill's, done by five."""
LOOK_EVERY = 1.0
REASON = re.compile(r"^(error|failed|broken|stale|healing|ALERT)\b.*: \S|pieces are not whole", re.MULTILINE)
"""How a command that ends with 1 says why."""


def rounds(ground: Ground, crowds: int) -> dict[str, Round]:
    made: dict[str, Round] = {f"crowd-{n}": lambda luck: crowd(ground, luck) for n in range(1, crowds + 1)}
    made["first"] = lambda _: first(ground)
    return made | ({"crowd-postgres": lambda luck: _on_postgres(ground, luck)} if has_postgres() else {})


def has_postgres() -> bool:
    try:
        find_binaries()
    except PostgresMissing:
        return False
    return True


def _on_postgres(ground: Ground, luck: random.Random) -> Found:
    with running_server() as server:
        return crowd(ground, luck, server.url("postgres"))


def crowd(ground: Ground, luck: random.Random, database_url: str = "") -> Found:
    """Half of the homes are empty at first, so that all meet nothing; `database_url` is of a Postgres."""
    found = Found()
    with ground.house() as house:
        if database_url:
            house.settings = replace(
                house.settings, env="production", database_url=database_url, catalog_url=database_url
            )
        if luck.random() < 0.5:
            half = ground.days[: len(ground.days) // 2]
            house.run("market", "backfill", "--from", str(half[0]), "--to", str(half[-1]))
        with companions(house, ground.yardstick, luck, found, ground.seconds):
            spread = luck.choice((0.0, ground.seconds))
            everybody = Crowd(house, ground.yardstick, found)
            everybody.play(
                (luck.uniform(0, spread), everybody.command(words)) for words in _commands(ground, luck)
            )
        with told(found):
            found.complaints += unfinished(house)
            last(ground, house, {}, found)
    return found


def first(ground: Ground) -> Found:
    """The first commands of a home, all at once: they make its databases. Then anybody can use it."""
    found = Found()
    for _ in range(HOMES):
        with ground.house() as house:
            everybody = Crowd(house, ground.yardstick, found)
            everybody.play((0.0, everybody.command(words)) for words in FIRST)
            everybody.play([(0.0, everybody.command(("doctor",)))])
            with told(found):
                found.complaints += unfinished(house)
    return found


@contextmanager
def told(found: Found) -> Iterator[None]:
    """A home that cannot even be looked at is a finding, and no end of the hunt."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it is
        found.complaints.append(f"looking at the home met {type(error).__name__}: {str(error)[:600]}")


def _commands(ground: Ground, luck: random.Random) -> Iterator[tuple[str, ...]]:
    """Every range has the middle day in it."""
    days, middle = ground.days, len(ground.days) // 2
    for force in (False, luck.random() < 0.7, *luck.choice(((), (False,)))):
        first, final = days[luck.randint(0, middle)], days[luck.randint(middle, len(days) - 1)]
        forced = ("--force",) if force else ()
        yield ("market", "backfill", "--from", str(first), "--to", str(final), *forced)
    yield from luck.choice(((DAILY,), (HEAL,), (DAILY, HEAL)))
    yield from LOOKS


Deed = Callable[[], None]


@dataclass
class Crowd:
    """What happens at once on one home, and how the commands among it end."""

    house: House
    yardstick: Yardstick
    found: Found
    running: list[tuple[str, subprocess.Popen[bytes], Path]] = field(default_factory=list)

    def command(self, words: Sequence[str]) -> Deed:
        def start() -> None:
            self.running.append((" ".join(words), *self.house.start(*words)))

        return start

    def play(self, deeds: Iterable[tuple[float, Deed]]) -> None:
        """Do each after its delay in seconds, wait for all commands, and judge how they ended."""
        began, coming = time.monotonic(), sorted(deeds, key=lambda pair: pair[0])
        try:
            while coming or any(process.poll() is None for _, process, _ in self.running):
                passed = time.monotonic() - began
                while coming and coming[0][0] <= passed:
                    coming.pop(0)[1]()
                if passed > DEADLINE:
                    break
                self.reconcile()
                time.sleep(LOOK_EVERY)
            for name, process, said in self.running:
                self.found.complaints += judged(name, process, said)
                self.found.count(commands=1, refused=int(process.returncode == 1))
        finally:
            for _, process, _ in self.running:
                kill_group(process)
            self.running.clear()

    def reconcile(self) -> None:
        """Nothing half done is there at any moment."""
        self.found.count(looks=1)
        with told(self.found):
            try:
                self.found.complaints += self.yardstick.half_done(self.house.market)
            except PerennialError as error:
                if error.reason_code != "ledger_schema":  # until the first command has made it
                    raise


def judged(name: str, process: subprocess.Popen[bytes], words: Path) -> Iterator[str]:
    """What is wrong with how a command ended."""
    code, said = process.poll(), words.read_text(errors="replace")
    if code is None:
        yield f"{name} still runs, and waits for nothing it names: {said[-600:]}"
    elif "Traceback" in said:
        yield f"{name} showed a traceback and ended with {code}: {said[-600:]}"
    elif code not in (0, 1):
        yield f"{name} ended with {code}: {said[-600:]}"
    elif code and not REASON.search(said):
        yield f"{name} failed and says no reason: {said[-600:]}"


def unfinished(house: House) -> Iterator[str]:
    """What runs though everybody has ended, or failed for no reason that anybody knows."""
    for row in house.market.ledger.running():
        yield f"work {row.id} {row.key} is running for {row.run_id}, and everybody has ended"
    for row in house.market.ledger.find(limit=None):
        if row.reason_code == "unclassified":
            yield f"work {row.id} {row.key} met what nobody foresaw: {row.error}"
    with open_instance(house.settings) as instance:
        for run in instance.get_runs(filters=dg.RunsFilter(statuses=UNFINISHED)):
            yield f"run {run.run_id} is {run.status.value}, and everybody has ended"

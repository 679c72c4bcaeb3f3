"""Rounds: chaos under a name, with random choices of its own; each prints one line.

A round's choices come from the seed and its name alone, so that `--seed N --only NAME` plays it again.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

SHOWN = 8


@dataclass
class Findings:
    """The complaints of one round, and numbers for its line."""

    complaints: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, **more: int) -> None:
        for name, number in more.items():
            self.counts[name] = self.counts.get(name, 0) + number


Round = Callable[[random.Random], Findings]


def play_rounds(what: str, rounds: Mapping[str, Round], seed: int) -> int:
    """Return the number of rounds that found something wrong."""
    wrong = []
    for number, (name, play) in enumerate(rounds.items(), 1):
        began = time.monotonic()
        found = play(random.Random(f"{seed} {name}"))
        counts = " ".join(f"{key}={value}" for key, value in found.counts.items())
        result = f"{'WRONG' if found.complaints else 'ok'} {counts} {time.monotonic() - began:.1f} s"
        print(f"{what} {number}/{len(rounds)} {name} seed={seed} {result}", flush=True)
        for complaint in list(dict.fromkeys(found.complaints))[:SHOWN]:
            print(f"    {complaint}", flush=True)
        if found.complaints:
            wrong.append(name)
    print(json.dumps({"chaos": what, "seed": seed, "rounds": len(rounds), "wrong": wrong}), flush=True)
    return len(wrong)


def fresh_seed() -> int:
    return random.SystemRandom().randrange(1_000_000)

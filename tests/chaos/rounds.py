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
    """The number of rounds that found something wrong."""
    began, wrong, totals = time.monotonic(), [], Findings()
    for number, (name, play) in enumerate(rounds.items(), 1):
        started = time.monotonic()
        found = play(random.Random(f"{seed} {name}"))
        seconds = time.monotonic() - started
        totals.count(**found.counts)
        counts = " ".join(f"{key}={value}" for key, value in found.counts.items())
        verdict = "WRONG" if found.complaints else "ok"
        _print(f"{what} {number}/{len(rounds)} {name} seed={seed} {verdict} {counts} {seconds:.1f} s")
        different = list(dict.fromkeys(found.complaints))
        for complaint in different[:SHOWN]:
            _print(f"    {complaint}")
        if len(different) > SHOWN:
            _print(f"    and {len(different) - SHOWN} more")
        if found.complaints:
            wrong.append(name)
    seconds = round(time.monotonic() - began, 1)
    summary = {"chaos": what, "seed": seed, "rounds": len(rounds), "wrong": wrong, "seconds": seconds}
    _print(json.dumps({**summary, **totals.counts}))
    return len(wrong)


def fresh_seed() -> int:
    return random.SystemRandom().randrange(1_000_000)


def _print(line: str) -> None:
    print(line, flush=True)

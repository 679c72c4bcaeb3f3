"""Calculating millions of entries again: (a) here, (b) pandas, (c) rows through an ORM, (d) the floor.

a  `calculate_emissions` over all types of a year after their factors changed, as a run does it: leases in the
   ledger, inputs, unique keys, order, versions, commits with statistics, provenance, metadata
b  pandas: the columns it needs, merged with the factors, multiplied, written as zstd Parquet
c  one object at a time through the SQLAlchemy ORM into SQLite, on a sample, scaled up: with the factors in
   the session, and (`looked_up`) with a query per row
d  the bare DuckDB query with the same arithmetic, writing the same columns with the same compression

Then the factors of one type change, and only that type is calculated again. Every contestant works in a
process of its own, in turns; the median of its wall time, CPU time and peak memory counts. Other programs
disturb the wall time more than the CPU time, so both ratios are printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.carbon_peers import SAMPLE, floor, pandas, rows, timed
from benchmarks.carbon_world import World, nobody
from benchmarks.memory import peak_gib
from domain.carbon.tables import EMISSIONS
from services.carbon.calculate import calculate_emissions
from services.partitions import Attempt

ENTRIES = 10_000_000
TYPES = 15
ROUNDS = 3
SLOW = ("c", "looked_up")
"""What is a hundred times slower anyhow is measured once."""
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Took:
    """What a contestant's process said of its work."""

    seconds: float
    work: float
    peak_gib: float


def run(entries: int = ENTRIES) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), TYPES)
        in_child(world, "fill", str(entries))
        turns: dict[str, list[Took]] = {name: [] for name in ("a", "one", "b", "c", "looked_up", "d")}
        for number in range(1, ROUNDS + 1):
            for name, took in turns.items():
                if number > 1 and name in SLOW:
                    continue
                took.append(in_child(world, name, str(number)))
        reconcile = in_child(world, "plan", "0")
    return _reported(entries, turns, reconcile)


def _reported(entries: int, turns: dict[str, list[Took]], reconcile: Took) -> dict[str, float]:
    scale = {"c": entries / SAMPLE, "looked_up": entries / SAMPLE}
    clock = {n: median(t.seconds for t in of) * scale.get(n, 1) for n, of in turns.items()}
    work = {n: median(t.work for t in of) * scale.get(n, 1) for n, of in turns.items()}
    peak = {n: max(t.peak_gib for t in of) for n, of in turns.items()}
    for name in turns:
        print(f"  {name:<10}{clock[name]:10.1f} s{work[name]:10.1f} s of work{peak[name]:8.2f} GiB")
    print(f"  a pass at all of it: {reconcile.seconds * 1000:.0f} ms")
    return {
        "carbon_a_over_d": clock["a"] / clock["d"],
        "carbon_a_over_d_work": work["a"] / work["d"],
        "carbon_b_over_a": clock["b"] / clock["a"],
        "carbon_b_over_a_work": work["b"] / work["a"],
        "carbon_c_over_a": clock["c"] / clock["a"],
        "carbon_c_looked_up_over_a": clock["looked_up"] / clock["a"],
        "carbon_one_type_over_its_share": clock["one"] * TYPES / clock["a"],
        "carbon_one_type_over_its_share_work": work["one"] * TYPES / work["a"],
        "carbon_peak_gib": peak["a"],
    }


def in_child(world: World, what: str, given: str) -> Took:
    command = [sys.executable, "-m", "benchmarks.carbon", str(world.home), str(world.count), what, given]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return Took(**json.loads(done.stdout.splitlines()[-1]))


def _again(world: World, number: int, *, first_only: bool) -> Callable[[], object]:
    """A pass that finds what is due, and a run of it; `world.open()` has observed nothing yet."""
    world.new_factors(world.open(), number + 1000 * first_only, number)
    carbon = world.open()

    def work() -> None:
        due = [v.partition for v in carbon.plan().due if v.table == EMISSIONS.table]
        if len(due) != (1 if first_only else world.count):
            raise AssertionError(f"the plan wants {due}")
        calculate_emissions(carbon, due, Attempt(f"run {number} {first_only}"), nobody)

    return work


def _work(world: World, what: str, given: int, out: Path) -> Callable[[], object]:
    """Everything is made ready; the work is left."""
    prepared: dict[str, Callable[[], Callable[[], object]]] = {
        "fill": lambda: lambda: world.fill(given),
        "a": lambda: _again(world, given, first_only=False),
        "one": lambda: _again(world, given, first_only=True),
        "b": lambda: pandas(world, out),
        "c": lambda: rows(world, out, looks_up=False),
        "looked_up": lambda: rows(world, out, looks_up=True),
        "d": lambda: floor(world, out),
        "plan": lambda: world.open().plan,
    }
    return prepared[what]()


def main() -> None:
    parser = argparse.ArgumentParser(description="one contestant, in this process")
    parser.add_argument("home", type=Path)
    parser.add_argument("types", type=int)
    parser.add_argument("what")
    parser.add_argument("given", type=int)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.home) as out:
        seconds, work = timed(_work(World(given.home, given.types), given.what, given.given, Path(out)))
    print(json.dumps({"seconds": seconds, "work": work, "peak_gib": peak_gib()}))


if __name__ == "__main__":
    main()

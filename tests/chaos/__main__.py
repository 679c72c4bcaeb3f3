"""Chaos: the real command against a source that misbehaves, a machine that dies, and many copies of itself.

    python -m tests.chaos faults|unsteady|kills|races|carbon|references
        [--seed N] [--rounds N] [--days N] [--only ROUND]

Every round fills an empty home through child processes of the command, disturbs them at random moments,
heals, and then checks: each table has the rows of a home that was filled undisturbed, no key has two rows,
nothing in the ledger runs or is due, and every failure left a reason.

faults  every kind of fault of the sandbox by itself, then `--rounds` rounds with all of them in a fifth of
        the calls.
unsteady  `--rounds` times a source that fails a quarter of all calls in eight ways, and half of them:
        healed by two and by six backfills.
kills   `--rounds` times kill -9 of the whole process group at a random moment, up to three in a row; twenty
        times Ctrl-C; a disk that fills up; `perennial up` that loses a run's worker, its daemon and all its
        processes.
races   `--rounds` crowds: backfills, daily runs, healing and checks of overlapping days at once on one home,
        with maintenance in the middle and readers throughout; one crowd more on Postgres, where there is one.
carbon  `--rounds` times each, on SQLite and on Postgres where there is one: a crowd of uploads and healing at
        once; and twice as many series of one to four kills.
references  `--rounds` syncs of changing content, each killed at a random moment, on SQLite and on Postgres
        where there is one.

Each round prints one line, the end one line of JSON; the exit code is 1 if anything is wrong. `--seed N
--only NAME`, both printed, play a round again; moments are real time, so it hits nearly the same instruction.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from tests.chaos import (
    carbon_kills,
    carbon_races,
    faults,
    full_disk,
    interrupts,
    kills,
    races,
    references_kills,
    unsteady,
    up,
)
from tests.chaos.carbon_home import carbon_homes
from tests.chaos.market_checks import Baseline, baseline
from tests.chaos.rounds import Round, fresh_seed, play_rounds

ROUNDS = {"faults": 3, "unsteady": 3, "kills": 30, "races": 5, "carbon": 2, "references": 20}
DAYS = {"faults": 12, "unsteady": 49, "kills": 250, "races": 12}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=tuple(ROUNDS))
    parser.add_argument("--seed", type=int, help="play these rounds again (default: a new one)")
    parser.add_argument("--rounds", type=int, help=f"how many of the random rounds (default: {ROUNDS})")
    parser.add_argument("--days", type=int, help=f"trading days of the backfill (default: {DAYS})")
    parser.add_argument("--only", help="the name of one round, as its line shows it")
    options = parser.parse_args()
    seed = fresh_seed() if options.seed is None else options.seed
    number = ROUNDS[options.what] if options.rounds is None else options.rounds
    if options.what == "references":
        return _play(options, references_kills.rounds(number), seed)
    if options.what == "carbon":
        with carbon_homes() as homes:
            rounds = carbon_races.rounds(homes, number) | carbon_kills.rounds(homes, 2 * number, seed)
            return _play(options, rounds, seed)
    with baseline(options.days or DAYS[options.what]) as base:
        return _play(options, _market_rounds(options.what, base, number, seed), seed)


def _market_rounds(what: str, base: Baseline, number: int, seed: int) -> dict[str, Round]:
    match what:
        case "faults":
            return faults.rounds(base, number)
        case "unsteady":
            return unsteady.rounds(base, number)
        case "races":
            return races.rounds(base, number)
    return (
        kills.rounds(base, number, seed)
        | {"ctrl-c": interrupts.series}
        | full_disk.rounds(base)
        | up.rounds(base)
    )


def _play(options: argparse.Namespace, rounds: Mapping[str, Round], seed: int) -> int:
    chosen = {name: play for name, play in rounds.items() if options.only in (None, name)}
    return 1 if play_rounds(options.what, chosen, seed) else 0


if __name__ == "__main__":
    sys.exit(main())

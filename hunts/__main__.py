"""`python -m hunts`: see the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

import hunts
from hunts import accidents, carbon, carbon_kills, daemon, deaths, faults, kills, races, two_daemons
from hunts.carbon_ground import carbon_ground
from hunts.house import last_days
from hunts.rounds import Round, fresh_seed, ground, hunt

UP_EACH = 2
"""Rounds of `perennial up` for each part of it that dies."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m hunts",
        description=hunts.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("faults", "kills", "races", "carbon"))
    parser.add_argument("--seed", type=int, help="play these rounds again (default: a new one)")
    parser.add_argument("--rounds", type=int, help="mixed rounds (3), kills (30), crowds (5), or of each (2)")
    parser.add_argument("--days", type=int, help="trading days of the backfill (12, kills 250)")
    parser.add_argument("--no-daemon", action="store_true", help="leave `perennial up` out")
    parser.add_argument("--only", help="the name of one round, as its line shows it")
    options = parser.parse_args()
    seed = fresh_seed() if options.seed is None else options.seed
    if options.what == "carbon":
        return 1 if _carbon(2 if options.rounds is None else options.rounds, seed, options.only) else 0
    days = last_days(options.days or {"faults": 12, "kills": 250, "races": 12}[options.what])
    with ground(days) as here:
        if options.what == "faults":
            rounds = faults.rounds(here, 3 if options.rounds is None else options.rounds)
            rounds |= {} if options.no_daemon else daemon.rounds(here)
        elif options.what == "races":
            rounds = races.rounds(here, 5 if options.rounds is None else options.rounds)
            rounds |= {} if options.no_daemon else two_daemons.rounds(here)
        else:
            rounds = kills.rounds(here, 30 if options.rounds is None else options.rounds, seed)
            rounds |= accidents.rounds(here)
            rounds |= {} if options.no_daemon else deaths.rounds(here, UP_EACH)
        return 1 if hunt(options.what, _chosen(rounds, options.only), seed) else 0


def _carbon(each: int, seed: int, only: str | None) -> int:
    with carbon_ground() as here:
        rounds = carbon.rounds(here, each) | carbon_kills.rounds(here, 2 * each, seed)
        return hunt("carbon", _chosen(rounds, only), seed)


def _chosen(rounds: Mapping[str, Round], only: str | None) -> dict[str, Round]:
    return {name: play for name, play in rounds.items() if only in (None, name)}


if __name__ == "__main__":
    sys.exit(main())

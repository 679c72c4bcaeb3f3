"""`python -m hunts`: see the package."""

from __future__ import annotations

import argparse
import sys

import hunts
from hunts import accidents, daemon, deaths, faults, kills, races, two_daemons
from hunts.house import last_days
from hunts.rounds import fresh_seed, ground, hunt

UP_EACH = 2
"""Rounds of `perennial up` for each part of it that dies."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m hunts",
        description=hunts.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("faults", "kills", "races"))
    parser.add_argument("--seed", type=int, help="play these rounds again (default: a new one)")
    parser.add_argument("--rounds", type=int, help="mixed rounds (3), kills (30) or crowds (5)")
    parser.add_argument("--days", type=int, help="trading days of the backfill (12, kills 250)")
    parser.add_argument("--no-daemon", action="store_true", help="leave `perennial up` out")
    parser.add_argument("--only", help="the name of one round, as its line shows it")
    options = parser.parse_args()
    seed = fresh_seed() if options.seed is None else options.seed
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
        chosen = {name: play for name, play in rounds.items() if options.only in (None, name)}
        return 1 if hunt(options.what, chosen, seed) else 0


if __name__ == "__main__":
    sys.exit(main())

"""`make bench`: side-by-side measurements in one run, ending with one JSON line of named ratios.

Ratios are what counts; absolute times belong to the machine. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import json

from benchmarks import backfill, looks


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--days", type=int, default=40, help="trading days of the backfill (default 40)")
    arguments = parser.parse_args()
    ratios = backfill.run(arguments.days) | looks.run()
    print(json.dumps({name: round(value, 2) for name, value in ratios.items()}))


main()

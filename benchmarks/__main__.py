"""`make bench`: side-by-side measurements in one run, ending with one JSON line of named ratios.

Ratios are what counts; absolute times belong to the machine. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
from collections.abc import Callable

WHAT: dict[str, tuple[str, str]] = {
    "backfill": ("benchmarks.backfill", "run"),
    "passes": ("benchmarks.passes", "run"),
    "commits": ("benchmarks.lake", "run"),
    "queries": ("benchmarks.lake", "queries"),
    "orchestration": ("benchmarks.orchestration", "run"),
    "queue": ("benchmarks.orchestration", "queue"),
    "ledger": ("benchmarks.ledger", "run"),
    "carbon": ("benchmarks.carbon", "run"),
    "references": ("benchmarks.references", "run"),
    "api": ("benchmarks.api", "run"),
    "scale": ("benchmarks.scale", "run"),
}
LONG = ("references", "api", "scale")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="*", help=f"{', '.join(WHAT)} (default: all but {', '.join(LONG)})")
    parser.add_argument("--days", type=int, default=250, help="trading days of the backfill (default 250)")
    arguments = parser.parse_args()
    if unknown := set(arguments.what) - WHAT.keys():
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    # Where this is set, our modules are compiled by every process anew and those of installed packages never.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    ratios: dict[str, float] = {}
    for name in arguments.what or [name for name in WHAT if name not in LONG]:
        module, function = WHAT[name]
        run: Callable[..., dict[str, float]] = getattr(importlib.import_module(module), function)
        ratios |= run(arguments.days) if name == "backfill" else run()
    print(json.dumps({name: round(value, 2) for name, value in ratios.items()}))


if __name__ == "__main__":
    main()

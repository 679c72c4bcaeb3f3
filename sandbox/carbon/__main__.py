"""`python -m sandbox.carbon FOLDER`: write a sample university's files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sandbox.carbon.institution import SEED, write


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sandbox.carbon", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=float, default=1.0, help="1: about 200,000 entries in three years")
    parser.add_argument("--seed", type=int, default=SEED, help="another number, another university")
    options = parser.parse_args(arguments)
    written = write(options.folder, options.scale, options.seed)
    entries = sum(one.rows for one in written if one.kind == "data")
    sys.stdout.write(f"{len(written)} files with {entries:,} entries in {options.folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

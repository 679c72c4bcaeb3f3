"""`python -m hunts.jumping SECONDS READINGS ARGUMENT…`: the command on a machine whose clock jumps.

After so many readings the clock is so many seconds off. It is exchanged before anything else is imported: no
setting of the product moves the machine's clock.
"""

from __future__ import annotations

import itertools
import sys
from datetime import datetime, timedelta

from domain.shared import clock


def main() -> None:
    off, readings = timedelta(seconds=float(sys.argv[1])), int(sys.argv[2])
    right, count = clock.machine_clock, itertools.count()

    def jumping() -> datetime:
        return right() + (off if next(count) >= readings else timedelta(0))

    clock.machine_clock = jumping
    sys.argv[1:3] = []

    from orchestration.cli.main import main as command

    command()


if __name__ == "__main__":
    main()

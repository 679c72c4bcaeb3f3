"""A second daemon over one state, clicks, commands, lost days and maintenance at once: all gets quiet."""

from __future__ import annotations

from pathlib import Path

import pytest

from hunts.rounds import fresh_seed, hunt
from hunts.two_daemons import daemons

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.mark.timeout(900)  # its own deadlines are sooner and say what waits
def test_two_daemons__everything_at_once__ends_with_the_same_content(tmp_path: Path) -> None:
    assert hunt("races", {"daemons": lambda luck: daemons(tmp_path, luck, storms=1)}, fresh_seed()) == 0

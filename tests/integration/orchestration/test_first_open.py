"""Several commands open an empty home at the same moment: all succeed, and later commands too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
AT_ONCE = 3


@pytest.mark.chaos
def test_open_instance__empty_home_and_many_commands__opens_for_all(tmp_path: Path) -> None:
    foreign = ("PERENNIAL_", "TUSHARE_", "DAGSTER_")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    for attempt in range(2):
        environment["PERENNIAL_HOME"] = str(tmp_path / f"home-{attempt}")
        command = [sys.executable, "-m", "orchestration.cli", "pools", "apply"]
        crowd = [
            subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for _ in range(AT_ONCE)
        ]
        said = [process.communicate()[0] for process in crowd]
        assert [process.returncode for process in crowd] == [0] * AT_ONCE, said
        later = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert later.returncode == 0, later.stderr

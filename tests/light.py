"""What a reading command imports: people and cron wait for each package."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAVY = ("dagster", "pandas", "pyarrow.dataset", "pyiceberg", "tushare")
_PROGRAM = """
import json, sys
from orchestration.cli.main import main
codes = []
for command in json.loads(sys.argv[1]):
    sys.argv = ["perennial", *command]
    try:
        main()
    except SystemExit as end:
        codes.append(end.code or 0)
    else:
        codes.append(0)
print()
print(json.dumps([codes, sorted(set(json.loads(sys.stdin.read())) & set(sys.modules))]))
"""


def heavy_imports(*commands: Sequence[str], heavy: Sequence[str] = HEAVY) -> list[str]:
    """The heavy packages that these commands imported, in a process of their own; each must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(commands)],
        input=json.dumps(heavy),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    codes, found = json.loads(done.stdout.splitlines()[-1])
    assert not any(codes), done.stdout + done.stderr
    return list(found)

"""What a reading command imports: people and cron wait for each package."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAVY = ("dagster", "pandas", "pyarrow.dataset", "pyiceberg", "tushare")
_PROGRAM = """
import json, sys
from orchestration.cli.main import main
sys.argv = ["perennial", *json.loads(sys.argv[1])]
try:
    main()
except SystemExit as end:
    code = end.code or 0
else:
    code = 0
print()
print(json.dumps([code, sorted(set(json.loads(sys.stdin.read())) & set(sys.modules))]))
"""


def heavy_imports(*arguments: str) -> list[str]:
    """The heavy packages that a command which ends well has imported, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(arguments)],
        input=json.dumps(HEAVY),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    code, found = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stdout + done.stderr
    return list(found)

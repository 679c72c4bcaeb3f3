"""Several processes on one SQLite ledger: no minute ever holds more calls than the account has."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from resources.database.engine import open_engine
from resources.database.migrate import migrate

PROCESSES = 2

CALLER = """
import sys
from datetime import UTC, datetime, timedelta
from resources.database.engine import open_engine
from resources.tushare.errors import RateLimited
from resources.tushare.pace import Pacer

url, limit, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
now = datetime(2026, 11, 17, 10, 0, tzinfo=UTC)

def sleep(seconds):
    global now
    now += timedelta(seconds=seconds)

pacer = Pacer(open_engine(url), per_minute=limit, clock=lambda: now, sleeper=sleep)
sys.stdin.readline()
for _ in range(calls):
    try:
        pacer.take("daily")
    except RateLimited:
        continue
    print(now.isoformat())
"""


def test_take__several_processes__stay_below_the_limit_and_use_it(tmp_path: Path) -> None:
    limit = 50
    url = f"sqlite:///{tmp_path}/ledger.db"
    engine = open_engine(url)
    migrate(engine)
    engine.dispose()
    calls = limit * 3 // PROCESSES
    callers = [
        subprocess.Popen(
            [sys.executable, "-c", CALLER, url, str(limit), str(calls)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(PROCESSES)
    ]
    for caller in callers:
        assert caller.stdin is not None
        caller.stdin.write("go\n")
        caller.stdin.flush()
    minutes: Counter[str] = Counter()
    for caller in callers:
        minutes.update(caller.communicate(timeout=60)[0].split())
        assert caller.returncode == 0
    assert max(minutes.values()) <= limit
    assert sum(minutes.values()) > limit * 2, "and little of it is lost"

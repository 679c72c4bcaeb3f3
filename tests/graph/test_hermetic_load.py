"""Loading the code location asks nothing of its surroundings: no variable, no socket, no file but its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
import dagster, dagster_shared
import json, time

before, touched = set(sys.modules), []

def watch(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "sqlite3.connect", "subprocess.Popen",
                 "os.mkdir", "os.remove", "os.rename", "os.system", "os.posix_spawn"):
        touched.append(f"{event} {arguments!r}"[:200])
    if event == "open" and isinstance(arguments[0], str) and arguments[1] and set(arguments[1]) & set("wax+"):
        touched.append(f"writes {arguments[0]}")

sys.dont_write_bytecode = True
sys.addaudithook(watch)
began = time.process_time()
from orchestration.definitions import defs
defs.resolve_asset_graph()
print(json.dumps({
    "cpu": time.process_time() - began,
    "touched": touched,
    "modules": sorted({name.split(".")[0] for name in set(sys.modules) - before}),
    "assets": len(defs.resolve_asset_graph().get_all_asset_keys()),
}))
"""

HEAVY = {
    "adlfs",
    "alembic",
    "boto3",
    "botocore",
    "exchange_calendars",
    "fsspec",
    "gcsfs",
    "httpx",
    "kubernetes",
    "pandas",
    "psycopg2",
    "pyiceberg",
    "requests",
    "rich",
    "s3fs",
    "sandbox",
    "trino",
    "tushare",
    "typer",
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env={}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_definitions__empty_environment__load(loaded: dict[str, Any]) -> None:
    assert loaded["assets"] > 8


def test_definitions__loading__touch_no_network_no_database_and_no_file(loaded: dict[str, Any]) -> None:
    assert loaded["touched"] == []


def test_definitions__loading__import_no_client_of_runs(loaded: dict[str, Any]) -> None:
    assert sorted(HEAVY & set(loaded["modules"])) == []


def test_definitions__loading__take_little_more_than_dagster(loaded: dict[str, Any]) -> None:
    assert loaded["cpu"] < 2.0

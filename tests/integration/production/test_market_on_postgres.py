"""One market day with production settings: ledger, lake catalogue and Dagster storage in a real Postgres."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from sandbox.server import SandboxServer

ROOT = Path(__file__).resolve().parents[3]
NOW = "2026-11-17T19:00:00+08:00"


@pytest.fixture(scope="module")
def source() -> Iterator[str]:
    with SandboxServer(port=0) as server:
        yield server.url


@pytest.mark.slow
def test_a_market_day_runs_on_postgres_and_leaves_nothing_in_files(
    postgres_database: str, source: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("PERENNIAL_", "TUSHARE_", "DAGSTER_"))},
        "PERENNIAL_HOME": str(home),
        "PERENNIAL_ENV": "production",
        "PERENNIAL_DATABASE_URL": postgres_database,
        "PERENNIAL_SOURCE": "sandbox",
        "PERENNIAL_NOW": NOW,
        "PERENNIAL_GAP_WINDOW_DAYS": "1",
        "PERENNIAL_GAP_LIMIT": "1",
        "TUSHARE_URL": source,
    }

    def perennial(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "orchestration.cli", *arguments]
        return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)

    done = perennial("market", "daily", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"] is True
    watch = perennial("check", "market")
    assert watch.returncode == 0, watch.stdout + watch.stderr
    rows = json.loads(perennial("sql", "--json", "SELECT count(*) AS n FROM market.normalized_daily").stdout)
    assert rows[0]["n"] > 5_000

    with sa.create_engine(postgres_database, poolclass=sa.NullPool).connect() as connection:

        def one(query: str) -> int:
            return int(connection.execute(sa.text(query)).scalar_one())

        assert one("SELECT count(*) FROM work WHERE status = 'completed'") >= 9
        assert one("SELECT count(*) FROM work WHERE status <> 'completed'") == 0
        assert one("SELECT count(*) FROM iceberg_tables") >= 7
        assert one("SELECT count(*) FROM runs WHERE status = 'SUCCESS'") > 0
        assert one("SELECT count(*) FROM runs WHERE status <> 'SUCCESS'") == 0
    assert not list(home.rglob("*.db")), "production keeps its state in Postgres"
    assert not [p for p in home.rglob("*.yaml") if postgres_database in p.read_text()], "an address in a file"

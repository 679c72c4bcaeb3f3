"""One market day with production settings: ledger, lake catalogue and Dagster storage in a real Postgres."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa
from dagster._daemon.types import DaemonHeartbeat

from orchestration.environments import load_settings
from orchestration.instance import open_instance
from sandbox.server import SandboxServer
from tests.command import said


@pytest.mark.slow
def test_daily__on_postgres__leaves_nothing_in_files(
    postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    for name in ("TUSHARE_TOKEN", "DAGSTER_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "PERENNIAL_HOME": str(home),
        "PERENNIAL_ENV": "production",
        "PERENNIAL_DATABASE_URL": postgres_database,
        "PERENNIAL_SOURCE": "sandbox",
        "PERENNIAL_NOW": "2026-11-17T19:00:00+08:00",
        "PERENNIAL_GAP_WINDOW_DAYS": "1",
        "PERENNIAL_GAP_LIMIT": "1",
        "PERENNIAL_MARKET_START": "2026-01-01",
    }.items():
        monkeypatch.setenv(name, value)
    with SandboxServer(port=0) as server:
        monkeypatch.setenv("TUSHARE_URL", server.url)
        done = said("market", "daily", "--json")
    assert (done.code, done.json["ok"]) == (0, True), done.err
    watch = said("check", "market")
    assert watch.code == 0, watch.out + watch.err
    [row] = said("sql", "--json", "SELECT count(*) AS n FROM market.normalized_daily").json
    assert row["n"] > 5_000

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


@pytest.mark.slow
def test_status__dagster_on_postgres__sees_the_daemon_and_a_stuck_run(
    postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "PERENNIAL_HOME": str(tmp_path / "home"),
        "PERENNIAL_ENV": "production",
        "PERENNIAL_DATABASE_URL": postgres_database,
        "PERENNIAL_DOMAINS": "carbon",
    }.items():
        monkeypatch.setenv(name, value)
    engine = sa.create_engine(postgres_database, poolclass=sa.NullPool)
    with engine.begin() as connection:  # Dagster writes in the zone of the database
        connection.exec_driver_sql(f"ALTER DATABASE \"{engine.url.database}\" SET TimeZone = 'Asia/Shanghai'")
    assert said("migrate").code == 0
    assert said("status", "--json").json["findings"] == [], "Dagster's tables are not made yet"

    def beat(instance: dg.DagsterInstance, minutes: int) -> None:
        at = (datetime.now(UTC) - timedelta(minutes=minutes)).timestamp()
        instance.add_daemon_heartbeat(DaemonHeartbeat(at, "SENSOR", "x"))

    with open_instance(load_settings()) as instance:
        beat(instance, 1)
        lives = said("status", "--json").json
        assert (lives["daemon_runs"], lives["findings"]) == (True, [])
        beat(instance, 60)
        run = dg.DagsterRun("job", status=dg.DagsterRunStatus.STARTED)
        instance.run_storage.add_historical_run(run, datetime.now(UTC) - timedelta(hours=2))
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE runs SET update_timestamp = create_timestamp")
    stopped = said("status", "--json").json
    assert stopped["daemon_runs"] is False
    assert {f["reason_code"]: f["health"] for f in stopped["findings"]} == {
        "daemon_down": "broken",
        "run_stuck": "stale",
    }

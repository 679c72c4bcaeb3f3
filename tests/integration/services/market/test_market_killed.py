"""A range run killed half-way: it shows exactly what it committed, and another run finishes the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import date, timedelta
from pathlib import Path

import dagster as dg
import pytest

from domain.shared.clock import machine_clock
from tests.integration.services.market.market_app import FETCHED, MarketApp

ROOT = Path(__file__).parents[4]
AUGUST = ("2024-08-29", "2024-08-30")
SEPTEMBER = ("2024-09-02", "2024-09-03")
STUCK = "normalized_adj_factor"
HOLE = "history:2024-09-04…2024-09-20"
"""What was never fetched between these days and those of a prepared app."""
COMMAND = ("market", "backfill", "--from", AUGUST[0], "--to", SEPTEMBER[-1])
PATIENCE = 120


def ended(app: MarketApp, tmp_path: Path, how: signal.Signals, timeout: int) -> tuple[int, str]:
    """The exit code and stderr of a backfill that got a signal between its first and its second month."""
    app.fault("adj_factor", "stall", day=date.fromisoformat(SEPTEMBER[0]), seconds=PATIENCE)
    app.set(TUSHARE_TIMEOUT_SECONDS=str(timeout))
    words = tmp_path / "stderr"
    program = "from orchestration.cli.main import main; main()"
    with app.instance() as instance, words.open("w") as stderr:
        victim = subprocess.Popen(
            [sys.executable, "-c", program, *COMMAND], cwd=ROOT, env=dict(os.environ), stderr=stderr
        )
        try:
            deadline = time.monotonic() + PATIENCE
            while not (materialized(instance, STUCK) >= set(AUGUST) and finished(app) >= set(AUGUST)):
                assert victim.poll() is None, words.read_text()
                assert time.monotonic() < deadline, "it never committed its first month"
                time.sleep(0.1)
            victim.send_signal(how)
            victim.wait(PATIENCE / 2)
        finally:
            victim.kill()
            victim.wait()
    app.expect_healthy()
    return victim.returncode, words.read_text()


def materialized(instance: dg.DagsterInstance, table: str) -> set[str]:
    return set(instance.get_materialized_partitions(dg.AssetKey(["market", table])))


def finished(app: MarketApp) -> set[str]:
    return {r.key.split(":")[1] for r in app.work(f"{STUCK}:2024-0") if r.status == "completed"}


def committed(app: MarketApp, table: str) -> set[str]:
    return set(app.market.lake.partitions(f"market.{table}")) & {*AUGUST, *SEPTEMBER}


def lease_runs_out(app: MarketApp) -> None:
    """As if the minute had passed that a lease lasts without a heartbeat."""
    with app.market.ledger.engine.begin() as connection:
        past = (machine_clock() - timedelta(seconds=1)).replace(tzinfo=None)
        connection.exec_driver_sql("UPDATE work SET lease_until = ? WHERE status = 'running'", (str(past),))


def test_backfill__killed__shows_what_it_committed_and_the_next_does_the_rest(
    app: MarketApp, tmp_path: Path
) -> None:
    ended(app, tmp_path, signal.SIGKILL, timeout=PATIENCE)
    with app.instance() as instance:
        assert committed(app, STUCK) == set(AUGUST)
        for table in FETCHED:
            shown = materialized(instance, table) & {*AUGUST, *SEPTEMBER}
            assert shown == committed(app, table), table
    running = {row.key for row in app.work() if row.status == "running"}
    assert {f"{STUCK}:{day}" for day in SEPTEMBER} <= running

    finding = app.status()[f"{STUCK}:{SEPTEMBER[0]}"]
    assert (finding["health"], finding["reason_code"]) == ("healing", "worker_lost"), "before its lease ends"
    assert "perennial market heal" in finding["action"]
    lease_runs_out(app)
    finding = app.status()[f"{STUCK}:{SEPTEMBER[0]}"]
    assert finding["reason_code"] == "worker_lost"

    app.source.calls.clear()
    said = app.run(*COMMAND)
    assert said.code == 0, said.err
    assert "took back" in said.err
    asked = {call.params["trade_date"] for call in app.source.calls.recent("adj_factor")}
    assert asked == {day.replace("-", "") for day in SEPTEMBER}, "what was committed is not fetched again"
    with app.instance() as instance:
        for table in FETCHED:
            assert committed(app, table) == {*AUGUST, *SEPTEMBER}
            assert materialized(instance, table) >= {*AUGUST, *SEPTEMBER}
        states = [run.status for run in instance.get_runs()]
    assert dg.DagsterRunStatus.STARTED not in states
    assert states.count(dg.DagsterRunStatus.FAILURE) == 1
    assert set(app.status()) == {HOLE}


def test_backfill__interrupted__says_so_and_goes_on_when_given_again(app: MarketApp, tmp_path: Path) -> None:
    code, said = ended(app, tmp_path, signal.SIGINT, timeout=3)
    assert code == 130
    [line] = [line for line in said.splitlines() if "interrupted" in line]
    assert line.startswith("interrupted: what was committed is kept (normalized_adj_factor 2)")
    assert line.endswith("; give the same command again to go on")
    assert committed(app, STUCK) == set(AUGUST)
    assert [row.key for row in app.work() if row.status == "running"] == []
    again = app.run(*COMMAND)
    assert again.code == 0, again.err
    assert committed(app, STUCK) == {*AUGUST, *SEPTEMBER}
    assert set(app.status()) == {HOLE}


@pytest.mark.parametrize(
    ("table", "days"), [(STUCK, AUGUST), ("coverage", AUGUST[:1] * 2), ("revisions", AUGUST[:1] * 2)]
)
def test_materialize__dies_before_its_record__has_its_events(
    app: MarketApp, monkeypatch: pytest.MonkeyPatch, table: str, days: tuple[str, str]
) -> None:
    """Every later run finds the day complete, and reports nothing."""
    if table != STUCK:
        assert app.run("market", "backfill", "--from", days[0], "--to", days[1]).code == 0
        app.drop(table, *dict.fromkeys(days))
    with monkeypatch.context() as patch, app.instance() as instance:
        if table != STUCK:
            instance.wipe_assets([dg.AssetKey(["market", table])])
        for name in ("record", "mark_recorded"):
            patch.setattr(f"resources.ledger.provenance.Provenance.{name}", _die)
        app.materialize(instance, [table], days=days)
        assert materialized(instance, table) >= set(days)
    assert all(app.rows(table, day) > 0 for day in days) or table == "revisions"


def _die(*_: object, **__: object) -> None:
    raise RuntimeError("the worker died here")

"""Problems, and what `status` says of each: why, since when, what happens next, what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from domain.market.plan import FILL
from domain.shared.clock import machine_clock
from tests.integration.services.market.market_app import TODAY, MarketApp

ROOT = Path(__file__).parents[4]
TABLE = "normalized_adj_factor"
KEY = f"{TABLE}:{TODAY}"


@dataclass(frozen=True)
class Problem:
    """`next_attempt` True: it names one; False: none comes before a person has acted, or none is needed."""

    make: Callable[[MarketApp], None]
    subject: str
    health: str
    reason_code: str
    reason: str
    next_attempt: bool
    action: str


def token_wrong(app: MarketApp) -> None:
    app.drop(TABLE, TODAY)
    app.set(TUSHARE_TOKEN="no-such-token")
    app.run("market", "heal")


def day_half_left(app: MarketApp) -> None:
    held = app.frame(TABLE, TODAY)
    app.market.lake.replace(f"market.{TABLE}", TODAY, held.slice(0, held.num_rows // 2))


def worker_killed(app: MarketApp) -> None:
    """A worker that leased the day and sent no heartbeat since."""
    app.drop(TABLE, TODAY)
    market = app.market
    market.ledger.lease(FILL, [KEY], "run-of-the-dead", heartbeat=False).__enter__()
    with market.ledger.engine.begin() as connection:
        past = (machine_clock() - timedelta(seconds=1)).replace(tzinfo=None)
        connection.exec_driver_sql("UPDATE work SET lease_until = ? WHERE status = 'running'", (str(past),))


def calendar_missing(app: MarketApp) -> None:
    lake = app.market.lake
    nothing = lake.tables["market.normalized_trade_cal"].schema.empty_table()
    lake.replace("market.normalized_trade_cal", "2024", nothing, allow_empty=True)
    app.fault("trade_cal", "http_500")
    app.run("market", "heal")


PROBLEMS = {
    "token wrong": Problem(
        token_wrong, KEY, "broken", "token", "Tushare refused with code 40101", False, "set TUSHARE_TOKEN"
    ),
    "day half left": Problem(
        day_half_left, KEY, "healing", "incomplete", "rows (50.0%) are left", True, "nothing with a"
    ),
    "worker killed": Problem(
        worker_killed, KEY, "healing", "worker_lost", "no sign of life", True, "nothing with a running daemon"
    ),
    "calendar missing": Problem(
        calendar_missing,
        "normalized_trade_cal:2024",
        "healing",
        "source_fails",
        "trade_cal failed after 3 retries",
        True,
        "ask the operator of the source",
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_status__problem__names_reason_next_attempt_and_action(app: MarketApp, name: str) -> None:
    problem = PROBLEMS[name]
    problem.make(app)
    found = app.status()[problem.subject]
    assert (found["health"], found["reason_code"]) == (problem.health, problem.reason_code), found
    assert problem.reason in found["reason"]
    assert problem.action in found["action"]
    assert (found["next_attempt"] is not None) is problem.next_attempt
    assert found["since"] is not None
    assert "no-such-token" not in str(found)


def test_status__waiting_or_stuck__needs_a_person_only_if_stuck(app: MarketApp) -> None:
    day_half_left(app)
    waiting = app.run("status", "--json")
    assert (waiting.code, waiting.json["needs_a_person"]) == (0, False)
    token_wrong(app)
    stuck = app.run("status", "--json")
    assert (stuck.code, stuck.json["needs_a_person"]) == (1, True)
    printed = app.run("status").out
    [line] = [line for line in printed.splitlines() if KEY in line]
    assert "broken" in line
    assert "token: adj_factor: Tushare refused" in line


def test_status__disk_read_only__names_it(app: MarketApp, tmp_path: Path) -> None:
    """In a mount namespace of its own, where the home folder is on a file system mounted read-only."""
    if shutil.which("unshare") is None or not can_mount():
        reason = "a read-only disk was not tried: it needs unshare and the right to mount"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    kept = tmp_path / "kept"
    shutil.copytree(app.home, kept)
    script = (
        f"mount -t tmpfs tmpfs {app.home} && cp -a {kept}/. {app.home} "
        f"&& mount -o remount,ro {app.home} && exec {sys.executable} -c "
        "'from orchestration.cli.main import main; main()' "
    )

    def on_a_read_only_disk(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["unshare", "-rm", "sh", "-c", script + " ".join(command)],
            cwd=ROOT,
            env=dict(os.environ),
            capture_output=True,
            text=True,
            timeout=120,
        )

    status = on_a_read_only_disk("status", "--json")
    assert status.returncode == 1, status.stderr
    found = {f["subject"]: f for f in json.loads(status.stdout)["findings"]}[str(app.home)]
    assert (found["health"], found["reason_code"]) == ("broken", "ledger_read_only")
    assert found["action"]


def can_mount() -> bool:
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def test_status__home_never_used__says_so_and_creates_nothing(empty_app: MarketApp) -> None:
    found = empty_app.run("status", "--json")
    assert found.code == 1
    assert found.json["findings"][0]["reason_code"] == "ledger_schema"
    watched = empty_app.run("check", "market")
    assert (watched.code, watched.out.count("\n")) == (1, 1)
    assert watched.out.startswith("ALERT market: there is no ledger at ")
    assert not empty_app.home.exists(), "a pass leaves nothing behind"

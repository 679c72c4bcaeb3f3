"""Eight troubles, and what `status --json` says of each: why, since when, what happens next, what to do."""

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
from resources.lake.error import LakeUnwritable
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


def source_down(app: MarketApp) -> None:
    app.drop(TABLE, TODAY)
    app.stop_source()
    app.run("market", "heal")


def day_half_there(app: MarketApp) -> None:
    app.drop(TABLE, TODAY)
    app.fault("adj_factor", "partial_day", keep=0.5)
    app.run("market", "heal")


def day_half_left(app: MarketApp) -> None:
    held = app.frame(TABLE, TODAY)
    app.market.lake.replace(f"market.{TABLE}", TODAY, held.slice(0, held.num_rows // 2))


def day_explained(app: MarketApp) -> None:
    app.drop(TABLE, TODAY)
    app.fault("adj_factor", "partial_day", keep=0.95)
    app.run("market", "heal")
    app.later(hours=1)
    app.run("market", "heal")


def worker_killed(app: MarketApp) -> None:
    """A worker that took the day and was never heard of again."""
    app.drop(TABLE, TODAY)
    market = app.market
    market.ledger.lease(FILL, [KEY], "run-of-the-dead", heartbeat=False).__enter__()
    with market.ledger.engine.begin() as connection:
        past = (machine_clock() - timedelta(seconds=1)).replace(tzinfo=None)
        connection.exec_driver_sql("UPDATE work SET lease_until = ? WHERE status = 'running'", (str(past),))


def quota_used_up(app: MarketApp) -> None:
    app.drop(TABLE, TODAY)
    app.fault("adj_factor", "day_quota")
    app.run("market", "heal")


def calendar_missing(app: MarketApp) -> None:
    lake = app.market.lake
    nothing = lake.tables["market.normalized_trade_cal"].schema.empty_table()
    lake.replace("market.normalized_trade_cal", "2024", nothing, allow_empty=True)
    app.fault("trade_cal", "http_500")
    app.run("market", "heal")


TROUBLES = {
    "token wrong": Problem(
        token_wrong, KEY, "broken", "token", "Tushare refused with code 40101", False, "set TUSHARE_TOKEN"
    ),
    "source down": Problem(
        source_down, KEY, "healing", "source_down", "adj_factor failed after 3 retries", True, "TUSHARE_URL"
    ),
    "day half there": Problem(
        day_half_there,
        KEY,
        "healing",
        "incomplete",
        "5,285 rows (50.2%); too few, not kept",
        True,
        "fetched again until it is complete",
    ),
    "day half left": Problem(
        day_half_left, KEY, "healing", "incomplete", "rows (50.0%) are left", True, "nothing with a"
    ),
    "day explained": Problem(
        day_explained, KEY, "explained", "source_says_so", "the source says so", False, "nothing"
    ),
    "worker killed": Problem(
        worker_killed, KEY, "healing", "worker_lost", "no sign of life", True, "nothing with a running daemon"
    ),
    "quota used up": Problem(
        quota_used_up,
        KEY,
        "healing",
        "quota",
        "每天最多访问该接口",
        True,
        "nothing until the quota's next window",
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


@pytest.mark.parametrize("name", TROUBLES)
def test_status_tells_a_stranger_what_is_wrong(app: MarketApp, name: str) -> None:
    problem = TROUBLES[name]
    problem.make(app)
    found = app.status()[problem.subject]
    assert (found["health"], found["reason_code"]) == (problem.health, problem.reason_code), found
    assert problem.reason in found["reason"]
    assert problem.action in found["action"]
    assert (found["next_attempt"] is not None) is problem.next_attempt
    assert found["since"] is not None
    assert "no-such-token" not in str(found)


def test_what_seconds_cannot_restore_is_put_off_at_once_though_passes_are_left(
    app: MarketApp,
) -> None:
    app.drop(TABLE, TODAY)
    refused = LakeUnwritable("market.normalized_adj_factor: the lake cannot be written")
    with (
        pytest.raises(LakeUnwritable),
        app.market.ledger.lease(FILL, [KEY], "a-run", retry_in=timedelta(seconds=40)),
    ):
        raise refused
    assert (app.newest(KEY).status, app.newest(KEY).reason_code) == ("deferred", "lake_unwritable")
    found = app.status()[KEY]
    assert found["action"] == "make the warehouse writable; see PERENNIAL_HOME and PERENNIAL_WAREHOUSE"


def test_a_person_is_asked_for_only_where_one_is_needed(app: MarketApp) -> None:
    day_half_left(app)
    waiting = app.run("status", "--json")
    assert (waiting.code, waiting.json["needs_a_person"]) == (0, False)
    token_wrong(app)
    stuck = app.run("status", "--json")
    assert (stuck.code, stuck.json["needs_a_person"]) == (1, True)


def test_a_disk_that_cannot_be_written_is_named(app: MarketApp, tmp_path: Path) -> None:
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

    healed = on_a_read_only_disk("market", "heal")
    assert healed.returncode == 1
    assert "Traceback" not in healed.stderr, healed.stderr
    assert "remedy: " in healed.stderr


def can_mount() -> bool:
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def test_status__several_problems__prints_all(app: MarketApp) -> None:
    """Without --json a table, one line each, the worst first."""
    token_wrong(app)
    said = app.run("status")
    assert said.code == 1
    first = next(line for line in said.out.splitlines() if KEY in line)
    assert "broken" in first
    assert "token: adj_factor: Tushare refused" in first


def test_an_untouched_home_is_distinguished_from_a_broken_one(empty_app: MarketApp) -> None:
    found = empty_app.run("status", "--json")
    assert found.code == 1
    assert found.json["findings"][0]["reason_code"] == "ledger_schema"
    watched = empty_app.run("check", "market")
    assert (watched.code, watched.out.count("\n")) == (1, 1)
    assert watched.out.startswith("ALERT market: there is no ledger at ")
    assert not empty_app.home.exists(), "a pass leaves nothing behind"

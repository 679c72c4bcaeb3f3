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
from tests.integration.market.house import TODAY, House

ROOT = Path(__file__).parents[3]
TABLE = "normalized_adj_factor"
KEY = f"{TABLE}:{TODAY}"


@dataclass(frozen=True)
class Trouble:
    """`next_attempt` True: it names one; False: none comes before a person has acted, or none is needed."""

    make: Callable[[House], None]
    subject: str
    health: str
    reason_code: str
    reason: str
    next_attempt: bool
    action: str


def token_wrong(house: House) -> None:
    house.drop(TABLE, TODAY)
    house.set(TUSHARE_TOKEN="no-such-token")
    house.run("market", "heal")


def source_down(house: House) -> None:
    house.drop(TABLE, TODAY)
    house.stop_source()
    house.run("market", "heal")


def day_half_there(house: House) -> None:
    house.drop(TABLE, TODAY)
    house.fault("adj_factor", "partial_day", keep=0.5)
    house.run("market", "heal")


def day_half_left(house: House) -> None:
    held = house.frame(TABLE, TODAY)
    house.market.lake.replace(f"market.{TABLE}", TODAY, held.slice(0, held.num_rows // 2))


def day_explained(house: House) -> None:
    house.drop(TABLE, TODAY)
    house.fault("adj_factor", "partial_day", keep=0.95)
    house.run("market", "heal")
    house.later(hours=1)
    house.run("market", "heal")


def worker_killed(house: House) -> None:
    """A worker that took the day and was never heard of again."""
    house.drop(TABLE, TODAY)
    market = house.market
    market.ledger.lease(FILL, [KEY], "run-of-the-dead", heartbeat=False).__enter__()
    with market.ledger.engine.begin() as connection:
        past = (machine_clock() - timedelta(seconds=1)).replace(tzinfo=None)
        connection.exec_driver_sql("UPDATE work SET lease_until = ? WHERE status = 'running'", (str(past),))


def quota_used_up(house: House) -> None:
    house.drop(TABLE, TODAY)
    house.fault("adj_factor", "day_quota")
    house.run("market", "heal")


def calendar_missing(house: House) -> None:
    lake = house.market.lake
    nothing = lake.tables["market.normalized_trade_cal"].schema.empty_table()
    lake.replace("market.normalized_trade_cal", "2024", nothing, allow_empty=True)
    house.fault("trade_cal", "http_500")
    house.run("market", "heal")


TROUBLES = {
    "token wrong": Trouble(
        token_wrong, KEY, "broken", "token", "Tushare refused with code 40101", False, "set TUSHARE_TOKEN"
    ),
    "source down": Trouble(
        source_down, KEY, "healing", "source_down", "adj_factor failed after 3 retries", True, "TUSHARE_URL"
    ),
    "day half there": Trouble(
        day_half_there,
        KEY,
        "healing",
        "incomplete",
        "5,285 rows (50.2%); too few, not kept",
        True,
        "fetched again until it is complete",
    ),
    "day half left": Trouble(
        day_half_left, KEY, "healing", "incomplete", "rows (50.0%) are left", True, "nothing with a"
    ),
    "day explained": Trouble(
        day_explained, KEY, "explained", "source_says_so", "the source says so", False, "nothing"
    ),
    "worker killed": Trouble(
        worker_killed, KEY, "healing", "worker_lost", "no sign of life", True, "nothing with a running daemon"
    ),
    "quota used up": Trouble(
        quota_used_up,
        KEY,
        "healing",
        "quota",
        "每天最多访问该接口",
        True,
        "nothing until the quota's next window",
    ),
    "calendar missing": Trouble(
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
def test_status_tells_a_stranger_what_is_wrong(house: House, name: str) -> None:
    trouble = TROUBLES[name]
    trouble.make(house)
    found = house.status()[trouble.subject]
    assert (found["health"], found["reason_code"]) == (trouble.health, trouble.reason_code), found
    assert trouble.reason in found["reason"]
    assert trouble.action in found["action"]
    assert (found["next_attempt"] is not None) is trouble.next_attempt
    assert found["since"] is not None
    assert "no-such-token" not in str(found)


def test_what_seconds_cannot_mend_is_put_off_at_once_though_passes_are_left(house: House) -> None:
    house.drop(TABLE, TODAY)
    refused = LakeUnwritable("market.normalized_adj_factor: the lake cannot be written")
    with (
        pytest.raises(LakeUnwritable),
        house.market.ledger.lease(FILL, [KEY], "a-run", retry_in=timedelta(seconds=40)),
    ):
        raise refused
    assert (house.newest(KEY).status, house.newest(KEY).reason_code) == ("deferred", "lake_unwritable")
    found = house.status()[KEY]
    assert found["action"] == "make the warehouse writable; see PERENNIAL_HOME and PERENNIAL_WAREHOUSE"


def test_a_person_is_asked_for_only_where_one_is_needed(house: House) -> None:
    day_half_left(house)
    waiting = house.run("status", "--json")
    assert (waiting.code, waiting.json["needs_a_person"]) == (0, False)
    token_wrong(house)
    stuck = house.run("status", "--json")
    assert (stuck.code, stuck.json["needs_a_person"]) == (1, True)


def test_a_disk_that_cannot_be_written_is_named(house: House, tmp_path: Path) -> None:
    """In a mount namespace of its own, where the home folder is on a file system mounted read-only."""
    if shutil.which("unshare") is None or not can_mount():
        reason = "a read-only disk was not tried: it needs unshare and the right to mount"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    kept = tmp_path / "kept"
    shutil.copytree(house.home, kept)
    script = (
        f"mount -t tmpfs tmpfs {house.home} && cp -a {kept}/. {house.home} "
        f"&& mount -o remount,ro {house.home} && exec {sys.executable} -c "
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
    found = {f["subject"]: f for f in json.loads(status.stdout)["findings"]}[str(house.home)]
    assert (found["health"], found["reason_code"]) == ("broken", "ledger_unreachable")
    assert found["action"]

    healed = on_a_read_only_disk("market", "heal")
    assert healed.returncode == 1
    assert "Traceback" not in healed.stderr, healed.stderr
    assert "remedy: " in healed.stderr


def can_mount() -> bool:
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def test_a_full_look_at_trouble_in_words(house: House) -> None:
    """Without --json a table, one line each, the worst first."""
    token_wrong(house)
    said = house.run("status")
    assert said.code == 1
    first = next(line for line in said.out.splitlines() if KEY in line)
    assert "broken" in first
    assert "token: adj_factor: Tushare refused" in first


def test_an_untouched_home_is_told_apart_from_a_broken_one(empty_house: House) -> None:
    found = empty_house.run("status", "--json")
    assert found.code == 1
    assert found.json["findings"][0]["reason_code"] == "ledger_schema"
    watched = empty_house.run("check", "market")
    assert (watched.code, watched.out.count("\n")) == (1, 1)
    assert watched.out.startswith("ALERT market: there is no ledger at ")
    assert not empty_house.home.exists(), "a look leaves nothing behind"

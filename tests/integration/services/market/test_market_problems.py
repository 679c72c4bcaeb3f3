"""Problems of the market and of the platform: with only what `status` says, cause and remedy can be named."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from dagster._daemon.types import DaemonHeartbeat

from domain.market.plan import FILL
from domain.shared.clock import machine_clock
from resources.database.schema import VERSION_TABLE
from tests.breaking import break_lake
from tests.integration.services.market.market_app import PREPARED, TODAY, MarketApp
from tests.problems import Problem, assert_first, assert_named

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # pyiceberg's, about a lake broken on purpose

ROOT = Path(__file__).parents[4]
TABLE = "normalized_adj_factor"
KEY = f"{TABLE}:{TODAY}"
SUBJECT = f"{TABLE}: {TODAY}"
LONG_AGO = PREPARED[1]
HEAL = "`perennial market heal`"


def source_down(app: MarketApp) -> None:
    app.drop(TABLE, TODAY)
    app.stop_source()
    app.run("market", "heal")


def source_refuses(app: MarketApp, fault: str) -> None:
    app.drop(TABLE, TODAY)
    app.fault("adj_factor", fault)
    app.run("market", "heal")


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
    lease(app, "run-of-the-dead")
    with app.market.ledger.engine.begin() as connection:
        past = (machine_clock() - timedelta(seconds=1)).replace(tzinfo=None)
        connection.exec_driver_sql("UPDATE work SET lease_until = ? WHERE status = 'running'", (str(past),))


def lease(app: MarketApp, run: str) -> None:
    app.market.ledger.lease(FILL, [KEY], run, heartbeat=False).__enter__()


def day_half_left_long_ago(app: MarketApp) -> None:
    """Before a narrow gap window; `test_market_older_days.py` has one of 300 days ago."""
    app.set(PERENNIAL_GAP_WINDOW_DAYS="1", PERENNIAL_GAP_LIMIT="1")
    break_lake(app.home, f"market.{TABLE}", "--drop-half", LONG_AGO)


@contextlib.contextmanager
def dagster(app: MarketApp) -> Iterator[sqlite3.Connection]:
    """Dagster's database of runs."""
    with app.instance():
        pass
    with contextlib.closing(sqlite3.connect(app.home / "dagster" / "history" / "runs.db")) as connection:
        yield connection
        connection.commit()


def ago(**by: float) -> str:
    """A moment as Dagster stores it."""
    return str((machine_clock() - timedelta(**by)).replace(tzinfo=None))


def daemon_stopped(app: MarketApp, **before: float) -> None:
    app.drop(TABLE, TODAY)
    at = machine_clock() - timedelta(**before or {"hours": 1})
    with app.instance() as instance:
        instance.add_daemon_heartbeat(DaemonHeartbeat(at.timestamp(), "SENSOR", "x"))


def port_taken(app: MarketApp) -> dict[str, str]:
    daemon_stopped(app)
    server = socket.create_server(("127.0.0.1", 0))
    _open.append(server)
    return {"PERENNIAL_UI_PORT": str(server.getsockname()[1])}


_open: list[socket.socket] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while _open:
        _open.pop().close()


def run_stuck(app: MarketApp) -> None:
    """A living process that holds the day and does not get on."""
    app.drop(TABLE, TODAY)
    run = "0badc0de-0000-0000-0000-000000000000"
    lease(app, run)
    with dagster(app) as connection:
        statement = (
            "INSERT INTO runs (status, run_id, create_timestamp, update_timestamp) VALUES (?, ?, ?, ?)"
        )
        connection.execute(statement, ("STARTED", run, ago(hours=3), ago(hours=2)))


def clock_set_back(app: MarketApp) -> None:
    """Records of the eight hours that the clock was ahead: it showed the time of Shanghai as UTC."""
    with dagster(app) as connection:
        statement = "INSERT INTO runs (run_id, status, create_timestamp) VALUES ('abc', 'SUCCESS', ?)"
        connection.execute(statement, (ago(hours=-8),))


def migration_missing(app: MarketApp) -> None:
    with contextlib.closing(sqlite3.connect(app.home / "ledger.db")) as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '0001' WHERE version_num LIKE '0%'")
        connection.commit()


def postgres_down(_: MarketApp) -> dict[str, str]:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    return {"PERENNIAL_DATABASE_URL": f"postgresql://me:hunter2@127.0.0.1:{port}/perennial"}


PROBLEMS = {
    "source down": Problem(source_down, "healing", "source_down", "check TUSHARE_URL", SUBJECT),
    "token wrong": Problem(token_wrong, "broken", "token", "set TUSHARE_TOKEN", SUBJECT, code=1),
    "quota used up": Problem(
        lambda app: source_refuses(app, "day_quota"), "healing", "quota", "more points", SUBJECT
    ),
    "half a day today": Problem(
        day_half_left, "healing", "incomplete", HEAL, SUBJECT, effects=frozenset({"inputs_changed"})
    ),
    "half a day last year": Problem(
        day_half_left_long_ago, "healing", "incomplete", HEAL, f"{TABLE}: {LONG_AGO}"
    ),
    "a corrupt file": Problem(
        lambda app: break_lake(app.home, f"market.{TABLE}", "--rot-file", TODAY),
        "healing",
        "corrupt",
        "Check the disk",
        f"{TABLE}: 6 days 2024-09-23…{TODAY}",
    ),
    "a killed run": Problem(worker_killed, "healing", "worker_lost", HEAL, SUBJECT),
    "Postgres down": Problem(
        postgres_down, "broken", "ledger_unavailable", "PERENNIAL_DATABASE_URL", "ledger", code=1
    ),
    "the daemon does not run": Problem(
        daemon_stopped,
        "broken",
        "daemon_down",
        "`perennial up`",
        "daemon",
        code=1,
        effects=frozenset({"missing"}),
    ),
    "the clock in the wrong zone": Problem(
        clock_set_back, "broken", "clock_wrong", "set this machine's clock", "clock", code=1
    ),
    "a migration is missing": Problem(
        migration_missing, "broken", "ledger_schema", "`perennial migrate`", "ledger", code=1
    ),
    "the port is taken": Problem(
        port_taken,
        "broken",
        "port_in_use",
        "stop what uses the port",
        "UI port",
        code=1,
        effects=frozenset({"daemon_down", "missing"}),
    ),
    "a bad setting": Problem(
        lambda _: {"PERENNIAL_GAP_LIMIT": "many"},
        "broken",
        "invalid_settings",
        "correct these environment variables",
        "settings",
        code=2,
    ),
    "a stuck run": Problem(
        run_stuck, "broken", "run_stuck", "Terminate", "run 0badc0de", code=1, effects=frozenset({"missing"})
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_status__problem__names_cause_and_remedy_first(app: MarketApp, name: str) -> None:
    document = assert_named(app, PROBLEMS[name])
    assert document["needs_a_person"] is (PROBLEMS[name].code != 0)
    assert not document["healthy"]
    assert "no-such-token" not in str(document)
    assert "hunter2" not in str(document)


def test_status__calendar_missing__says_whom_to_ask(app: MarketApp) -> None:
    lake = app.market.lake
    nothing = lake.tables["market.normalized_trade_cal"].schema.empty_table()
    lake.replace("market.normalized_trade_cal", "2024", nothing, allow_empty=True)
    app.fault("trade_cal", "http_500")
    app.run("market", "heal")
    found = app.status()["normalized_trade_cal:2024"]
    assert (found["health"], found["reason_code"]) == ("healing", "source_fails")
    assert "ask the operator of the source" in found["action"]
    assert found["since"]
    assert found["next_attempt"]


def test_status__daemon_lives_or_was_never_started__is_no_finding(app: MarketApp) -> None:
    assert app.status() == {}
    daemon_stopped(app, seconds=20)
    found = app.run("status", "--json").json
    assert found["daemon_runs"]
    assert {f["reason_code"] for f in found["findings"]} == {"missing", "inputs_changed"}
    assert {f["action"] for f in found["findings"]} == {"nothing"}


def test_status__source_clock_is_far_off__blames_this_machine(app: MarketApp) -> None:
    """The source has no rows yet, and its answers are dated eight hours before this machine's clock."""
    app.drop(TABLE, TODAY)
    app.fault("adj_factor", "empty_day")
    app.run("market", "heal")
    assert app.newest(KEY).reason_code in ("empty_answer", "empty_overdue")
    with DatedServer(machine_clock() - timedelta(hours=8)) as url:
        app.let_time_run()
        app.set(TUSHARE_URL=url)
        found = app.status()
    assert found["clock"]["reason_code"] == "clock_wrong"
    assert found["clock"]["reason"] == "this machine's clock is 8 h 0 min ahead of the source's"
    assert found[KEY]["caused_by"] == "clock"


class DatedServer:
    """Answers one request, dated as given."""

    def __init__(self, date: datetime) -> None:
        self._date = date

    def __enter__(self) -> str:
        import threading
        from email.utils import format_datetime

        self._socket = socket.create_server(("127.0.0.1", 0))
        date = format_datetime(self._date, usegmt=True)
        head = f"HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Length: 0\r\n\r\n"

        def serve() -> None:
            connection, _ = self._socket.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(head.encode())

        self._thread = threading.Thread(target=serve, daemon=True)
        self._thread.start()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._thread.join(5)
        self._socket.close()


DISKS = {
    "read-only": (
        "mount -o remount,ro {home}",
        Problem(lambda _: None, "broken", "read_only", "make the folder writable", "PERENNIAL_HOME", code=1),
    ),
    "full": (
        "(cat /dev/zero > {home}/lake/filler || true) 2> /dev/null",
        Problem(lambda _: None, "broken", "disk_full", "free disk space", "PERENNIAL_HOME", code=1),
    ),
}


@pytest.mark.parametrize("name", DISKS)
def test_status__disk_full_or_read_only__names_it_first(app: MarketApp, tmp_path: Path, name: str) -> None:
    """In a mount namespace of its own, where the home folder is a file system of its own."""
    if shutil.which("unshare") is None or not can_mount():
        reason = "no disk was tried: it needs unshare and the right to mount"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    kept = tmp_path / "kept"
    shutil.copytree(app.home, kept)
    change, problem = DISKS[name]
    script = (
        f"mount -t tmpfs -o size=64m tmpfs {app.home} && cp -a {kept}/. {app.home} "
        f"&& {change.format(home=app.home)}; exec {sys.executable} -c "
        "'from orchestration.cli.main import main; main()' status --json"
    )
    answer = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode == 1, answer.stderr
    assert_first(json.loads(answer.stdout), problem)


def can_mount() -> bool:
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def test_status__home_never_used__is_not_started_and_creates_nothing(empty_app: MarketApp) -> None:
    found = empty_app.run("status", "--json")
    assert (found.code, found.json["started"], found.json["healthy"]) == (0, False, False)
    assert found.json["findings"] == []
    assert "`perennial up`" in found.json["summary"]
    assert empty_app.run("status").out.startswith("not started yet: run `perennial up`, or `perennial market")
    watched = empty_app.run("check", "market")
    assert (watched.code, watched.out.count("\n")) == (1, 1)
    assert watched.out.startswith("ALERT market: not started yet: run ")
    examined = empty_app.run("doctor", "--json")
    assert (examined.code, all(part["ok"] for part in examined.json)) == (0, True), examined.out
    parts = {part["part"]: part["result"] for part in examined.json}
    assert {parts[part] for part in ("ledger", "lake", "dagster")} == {
        "not there yet: the first start makes it"
    }
    assert not empty_app.home.exists(), "a look leaves nothing behind"


@pytest.mark.parametrize("setting", ["PERENNIAL_WAREHOUSE", "PERENNIAL_UPLOADS"])
def test_status__no_ledger_but_files_elsewhere__is_a_lost_ledger(
    empty_app: MarketApp, tmp_path: Path, setting: str
) -> None:
    held = tmp_path / "elsewhere" / "market" / "rows.parquet"
    held.parent.mkdir(parents=True)
    held.touch()
    empty_app.set(**{setting: f"file://{tmp_path / 'elsewhere'}"})
    found = empty_app.run("status", "--json")
    assert (found.code, found.json["started"]) == (1, True)
    assert [f["reason_code"] for f in found.json["findings"]] == ["ledger_schema"]


def test_doctor__before_the_first_start__tries_the_real_source(empty_app: MarketApp) -> None:
    """Its address is asked with the token, in a home that is thrown away."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PERENNIAL_NOW")
        patch.setenv("PERENNIAL_SOURCE", "tushare")
        patch.setenv("TUSHARE_TOKEN", "no-such-token")
        examined = empty_app.run("doctor", "--json")
    wrong = {part["part"]: part["result"] for part in examined.json if not part["ok"]}
    assert examined.code == 1
    assert set(wrong) == {"source"}
    assert "40101" in wrong["source"]
    assert not empty_app.home.exists()


def test_status__ledger_lost__is_no_fresh_home(app: MarketApp) -> None:
    for file in app.home.glob("ledger.db*"):
        file.unlink()
    found = app.run("status", "--json")
    assert (found.code, found.json["started"]) == (1, True)
    assert found.json["findings"][0]["reason_code"] == "ledger_schema"

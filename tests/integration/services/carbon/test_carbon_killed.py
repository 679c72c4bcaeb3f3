"""A killed process is no poisoned input: what it had starts again at once, when a person asks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._daemon.types import DaemonHeartbeat

from assets.policies.tags import DISPATCH
from domain.carbon.jobs import DATA_INGEST
from domain.carbon.tables import DATA_ENTRIES
from domain.market.plan import FILL
from domain.shared.error import TransientResourceError
from domain.shared.work import Work, WorkRequest
from orchestration.cli.runner import Runner
from orchestration.environments import load_settings
from orchestration.instance import note_origin, open_instance
from orchestration.presence import Presence, commands_folder
from orchestration.services import open_ledger
from services.carbon.reconcile import CarbonReconciler
from services.reconcile import reconcile
from tests.command import said
from tests.integration.services.carbon.carbon_app import PAPER, YEAR, CarbonApp
from tests.unit.sensors.test_work_sweep import at_work_job

ROOT = Path(__file__).parents[4]
KEY = f"{DATA_ENTRIES.table}:paper|{YEAR}"
NEWER = PAPER.replace("100", "200")
MORE = 100 * 700_000
"""Milligrams that the newer file adds."""
AT_ONCE = 40.0
"""Seconds: much less than any lease, silence or backoff lasts."""
KILLED = """
import os, signal
from orchestration.cli.main import main
from resources.ledger.lease import Lease
enter = Lease.__enter__
def dies(lease):
    if {claims}:
        enter(lease)
    os.kill(os.getpid(), signal.SIGKILL)
Lease.__enter__ = dies
main()
"""


def kill_upload(app: CarbonApp, *, claims: bool) -> None:
    """`upload --wait` is killed when it opens its first lease, just before or just after it claims."""
    file = app.file("newer.csv", NEWER)
    words = ("carbon", "upload", "data", str(file), "--year", YEAR, "--type", "paper", "--wait")
    program = [sys.executable, "-c", KILLED.format(claims=claims), *words]
    ended = subprocess.run(program, cwd=ROOT, env=dict(os.environ), capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()


def the_row(app: CarbonApp) -> Work:
    return app.carbon.ledger.find(DATA_INGEST, KEY)[0]


def heal_at_once(app: CarbonApp) -> None:
    before, began = app.milligrams(), time.monotonic()
    done = app.run("heal")
    assert done.code == 0, done.err
    assert time.monotonic() - began < AT_ONCE, done.err
    assert app.milligrams() == before + MORE
    assert not app.carbon.ledger.find(status=("queued", "running", "deferred"))


@pytest.mark.parametrize(
    ("claims", "times"), [(True, 3), (False, 1)], ids=["after its claim", "before its claim"]
)
def test_heal__upload_was_killed__imports_the_file_at_once(app: CarbonApp, claims: bool, times: int) -> None:
    for _ in range(times):
        kill_upload(app, claims=claims)
    heal_at_once(app)
    assert (the_row(app).status, the_row(app).attempts) == ("completed", 1)
    with open_instance(load_settings()) as instance:
        assert all(run.is_finished for run in instance.get_runs())


def test_heal__dispatched_by_a_process_that_is_gone__starts_the_run_at_once(app: CarbonApp) -> None:
    assert app.upload("data", NEWER, "--type", "paper").code == 0
    assert reconcile(CarbonReconciler(app.carbon)).starts
    heal_at_once(app)


def test_heal__work_waits_for_its_next_attempt__tries_it_now(app: CarbonApp) -> None:
    assert app.upload("data", NEWER, "--type", "paper").code == 0
    fail(app, TransientResourceError("the disk is slow"))
    heal_at_once(app)


def test_heal__source_named_the_moment__leaves_the_work_until_then(app: CarbonApp) -> None:
    assert app.upload("data", NEWER, "--type", "paper").code == 0
    fail(app, TransientResourceError("slow down", retry_after=timedelta(minutes=5)))
    assert app.run("heal").code == 1
    assert (the_row(app).status, the_row(app).attempts) == ("deferred", 1)


def fail(app: CarbonApp, error: Exception) -> None:
    with pytest.raises(type(error)), app.carbon.ledger.lease(DATA_INGEST, [KEY], "run 1", heartbeat=False):
        raise error


def test_heal__daemon_has_the_run_in_its_queue__waits_for_it_and_says_so(app: CarbonApp) -> None:
    assert app.upload("data", NEWER, "--type", "paper").code == 0
    [start] = reconcile(CarbonReconciler(app.carbon)).starts
    with open_instance(load_settings()) as instance:
        tags = {DISPATCH: start.dispatch_id}
        run = instance.create_run_for_job(at_work_job, status=dg.DagsterRunStatus.STARTING, tags=tags)
        seen: list[str] = []

        def end() -> None:
            seen.append(the_row(app).status)
            instance.report_run_canceled(run)

        timer = threading.Timer(4, end)
        timer.start()
        done = app.run("heal")
        timer.join()
    assert done.code == 0, done.err
    assert seen == ["queued"], "it was left to the daemon"
    assert f"waiting for other runs that have {KEY}" in done.err


def test_heal__run_is_queued_and_no_daemon_lives__does_it_at_once(app: CarbonApp) -> None:
    assert app.upload("data", NEWER, "--type", "paper").code == 0
    [start] = reconcile(CarbonReconciler(app.carbon)).starts
    with open_instance(load_settings()) as instance:
        tags = {DISPATCH: start.dispatch_id}
        note_origin(instance, at_work_job.name)
        run = instance.create_run_for_job(at_work_job, status=dg.DagsterRunStatus.QUEUED, tags=tags)
        heal_at_once(app)
        assert instance.get_run_by_id(run.run_id).status == dg.DagsterRunStatus.CANCELED


def test_heal__run_is_queued_and_a_daemon_lives__waits_for_it(app: CarbonApp) -> None:
    assert app.upload("data", NEWER, "--type", "paper").code == 0
    [start] = reconcile(CarbonReconciler(app.carbon)).starts
    with open_instance(load_settings()) as instance:
        beat = DaemonHeartbeat(time.time(), "QUEUED_RUN_COORDINATOR", "a daemon", [])
        instance.add_daemon_heartbeat(beat)
        tags = {DISPATCH: start.dispatch_id}
        note_origin(instance, at_work_job.name)
        run = instance.create_run_for_job(at_work_job, status=dg.DagsterRunStatus.QUEUED, tags=tags)
        seen: list[object] = []

        def end() -> None:
            seen.append(instance.get_run_by_id(run.run_id).status)
            instance.report_run_canceled(run)

        timer = threading.Timer(4, end)
        timer.start()
        done = app.run("heal")
        timer.join()
    assert done.code == 0, done.err
    assert seen == [dg.DagsterRunStatus.QUEUED]


def test_status__work_died_ten_times__names_the_command_that_starts_it_again(app: CarbonApp) -> None:
    assert app.upload("data", NEWER, "--type", "paper").code == 0
    ledger = app.carbon.ledger
    for death in range(10):
        ledger.lease(DATA_INGEST, [KEY], f"run {death}", heartbeat=False).__enter__()
        ledger.sweep(finished_runs={f"run {death}"})
    found = said("status", "--json").json["findings"]
    [finding] = [f for f in found if f["subject"] == KEY and f["reason_code"] != "file_replaced"]
    assert (finding["health"], finding["reason_code"]) == ("broken", "abandoned")
    number = the_row(app).id
    assert f"`perennial work retry {number}`" in finding["action"]
    assert app.run("heal").code == 1, "only a person decides"
    assert said("work", "retry", str(number)).code == 0
    heal_at_once(app)


@pytest.mark.parametrize(("env", "kind"), [("production", DATA_INGEST), ("embedded", FILL)])
def test_sweep__queued_run_that_is_not_of_this_command__is_left_in_the_queue(
    app: CarbonApp, env: str, kind: str
) -> None:
    settings = load_settings()
    theirs = open_ledger(settings)
    theirs.enqueue([WorkRequest(kind, KEY, "1")])
    [dispatch] = theirs.dispatch(kind, limit=1)
    with open_instance(settings) as instance, closing(Presence(commands_folder(settings.home))) as presence:
        note_origin(instance, at_work_job.name)
        run = instance.create_run_for_job(
            at_work_job, status=dg.DagsterRunStatus.QUEUED, tags={DISPATCH: dispatch.id}
        )
        here = settings.model_copy(update={"env": env})
        Runner(here, instance, presence).sweep(app.carbon.ledger)
        kept = instance.get_run_by_id(run.run_id)
        assert kept is not None
        assert kept.status == dg.DagsterRunStatus.QUEUED

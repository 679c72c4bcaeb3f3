"""`heal` and `--wait` beside others: what they hold is waited for, what the dead held is taken back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from domain.carbon.jobs import DATA_INGEST
from domain.carbon.tables import DATA_ENTRIES
from domain.shared.clock import machine_clock
from domain.shared.work import Work
from services.carbon.pipelines import list_pipelines
from tests.integration.services.carbon.carbon_app import PAPER, TRAIN, YEAR, CarbonApp

KEY = f"{DATA_ENTRIES.table}:paper|{YEAR}"
A_WHILE = 3.0
"""Seconds within which a command that does not wait has ended."""
NEWER = PAPER.replace("100", "200")


def held(app: CarbonApp, holder: str) -> Work:
    """The entries of a newer file in the hands of somebody, who says nothing more."""
    assert app.upload("data", NEWER, "--type", "paper").code == 0
    lease = app.carbon.ledger.lease(DATA_INGEST, [KEY], holder, heartbeat=False)
    return lease.__enter__().work[KEY]


def test_heal_takes_back_what_a_dead_run_held_and_does_it(app: CarbonApp) -> None:
    before = app.milligrams()
    held(app, "a run that nobody knows")
    done = app.run("heal")
    assert done.code == 0, done.err
    assert app.milligrams() == before + 100 * 700_000


@contextmanager
def after_a_while(work: Work, app: CarbonApp) -> Iterator[None]:
    """It is given back while the body lasts."""
    ledger = app.carbon.ledger
    timer = threading.Timer(A_WHILE, lambda: ledger.release(work))
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_heal_waits_for_what_others_hold(app: CarbonApp) -> None:
    before = app.milligrams()
    with after_a_while(held(app, "worker:somebody"), app):
        done = app.run("heal")
    assert done.code == 0, done.err
    assert app.milligrams() == before + 100 * 700_000
    assert not app.carbon.ledger.find(status=("queued", "running", "deferred"))


def test_upload_wait__others_are_unhealthy__fails_only_for_its_own_pipeline(app: CarbonApp) -> None:
    assert app.upload("data", NEWER, "--type", "paper").code == 0
    [paper, *_] = app.carbon.store.uploads.find()
    (app.home / "uploads" / paper.pipeline_id / "rows.parquet").unlink()
    before = app.milligrams()
    done = app.upload("data", TRAIN.replace("500", "600"), "--type", "train", "--wait", "--json")
    assert (done.code, done.json["ok"], done.json["failed"]) == (0, True, []), done.err
    assert app.milligrams() == before + 100 * 30_000
    assert f"broken: {KEY}: data.csv (upload 6): staged rows cannot be read" in done.err
    heavy = app.upload("data", TRAIN.replace("500", "1e12"), "--type", "train", "--wait", "--json")
    assert (heavy.code, heavy.json["ok"]) == (1, False)
    [why] = heavy.json["failed"]
    assert f"failed: {why}" in heavy.err
    name = heavy.json["files"][0]["pipeline"]
    assert why.startswith(
        f"data.csv, pipeline {name}, is PARTIAL: data_entry_emissions:train|2025 is failed: "
    )
    again = app.upload("data", TRAIN.replace("500", "1e12"), "--type", "train", "--wait", "--json")
    assert (again.code, again.json["failed"]) == (1, [why]), "the file is known, and still not in the report"


def test_find_pipelines__work_was_purged__have_not_failed(app: CarbonApp) -> None:
    app.carbon.ledger.purge(machine_clock() + timedelta(days=1))
    assert {one.failure for one in list_pipelines(app.carbon)} == {""}

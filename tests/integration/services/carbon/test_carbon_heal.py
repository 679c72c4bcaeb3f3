"""`heal` and `--wait` beside others: what they hold is waited for, what the dead held is taken back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from domain.carbon.jobs import DATA_INGEST
from domain.carbon.tables import DATA_ENTRIES
from domain.shared.clock import machine_clock
from resources.ledger.model import Work
from tests.integration.services.carbon.carbon_app import PAPER, TRAIN, YEAR, CarbonApp

KEY = f"{DATA_ENTRIES.table}:paper|{YEAR}"
A_WHILE = 3.0
"""Seconds in which whoever does not wait has ended long ago."""
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
    timer = threading.Timer(A_WHILE, lambda: ledger.release(work.id, work.fence))
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


def test_heal_says_what_is_not_well(app: CarbonApp) -> None:
    assert app.upload("data", NEWER, "--type", "paper").code == 0
    for kept in (app.home / "uploads").rglob("rows.parquet"):
        kept.unlink()
    done = app.run("heal")
    assert done.code == 1
    assert f"broken: {KEY}: data.csv (upload 6): staged rows cannot be read" in done.err


def test_an_upload_that_is_in_the_report_has_not_failed_for_the_troubles_of_others(
    app: CarbonApp,
) -> None:
    assert app.upload("data", NEWER, "--type", "paper").code == 0
    for kept in (app.home / "uploads").rglob("rows.parquet"):
        kept.unlink()
    unexpected = app.home / "drop" / "stray.csv"
    unexpected.parent.mkdir(exist_ok=True)
    unexpected.write_text("nobody takes it")
    before = app.milligrams()
    done = app.upload("data", TRAIN.replace("500", "600"), "--type", "train", "--wait", "--json")
    assert (done.code, done.json["ok"]) == (0, True), done.err
    assert app.milligrams() == before + 100 * 30_000
    others = done.json["others"]
    assert sorted(one.split(": ")[1] for one in others) == [KEY, "inbox"]
    assert all(f"note: {one}" in done.err for one in others)
    assert app.run("heal").code == 1
    heavy = app.upload("data", TRAIN.replace("500", "1e12"), "--type", "train", "--wait", "--json")
    assert (heavy.code, heavy.json["ok"], heavy.json["others"]) == (1, False, others)
    assert "\nbroken: data_entry_emissions:train|2025: " in heavy.err
    [why] = heavy.json["failed"]
    assert f"failed: {why}" in heavy.err
    chain = heavy.json["files"][0]["pipeline"]
    assert why.startswith(
        f"data.csv, pipeline {chain}, is PARTIAL: data_entry_emissions:train|2025 is failed: "
    )
    again = app.upload("data", TRAIN.replace("500", "1e12"), "--type", "train", "--wait", "--json")
    assert (again.code, again.json["failed"]) == (1, [why]), "the file is known, and still not in the report"


def test_a_file_that_came_so_long_ago_that_its_work_is_forgotten_has_not_failed(
    app: CarbonApp,
) -> None:
    app.carbon.ledger.purge(machine_clock() + timedelta(days=1))
    app.home.joinpath("drop").mkdir(exist_ok=True)
    app.home.joinpath("drop/plane.csv").write_text("nobody takes it")
    done = app.upload("data", PAPER, "--type", "paper", "--wait", "--json")
    assert done.json["files"][0]["known_already"]
    assert (done.code, done.json["failed"], len(done.json["others"])) == (0, [], 1), done.err


def test_where_every_file_and_every_upload_is_lost_the_same_files_bring_all_of_it_back(
    app: CarbonApp,
) -> None:
    """What status tells to do can be done, though units and entries are checked against each other."""
    before, history = app.milligrams(), ("factor_versions", YEAR)
    versions = app.content()[history]
    for path in (app.home / "uploads").rglob("rows.parquet"):
        path.unlink()
    for path in (app.home / "lake" / "warehouse").rglob("*.parquet"):
        path.unlink()
    assert app.run("heal").code == 1
    app.furnish()
    assert (app.milligrams(), app.content()[history]) == (before, versions)
    assert not app.due()
    assert app.settle() == []

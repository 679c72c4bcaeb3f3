"""Findings about the platform: what is said of the daemon, its runs, the disk and the clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from domain.shared.health import Finding, Health, needs_person, summary
from domain.shared.platform_health import (
    FullFolder,
    Platform,
    UnfinishedRun,
    findings,
    with_causes,
    without_killed,
)
from domain.shared.work_findings import not_started

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def before(**by: float) -> datetime:
    return NOW - timedelta(**by)


def run(silent: timedelta, *holds: int) -> UnfinishedRun:
    return UnfinishedRun("0123456789abcdef", before(hours=3), NOW - silent, frozenset(holds))


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        (Platform(), []),
        (Platform(daemon_runs=True, heartbeat=before(days=1)), []),
        (Platform(heartbeat=before(hours=1)), [("daemon", "broken", "daemon_down")]),
        (Platform(heartbeat=before(days=8)), []),
        (Platform(heartbeat=before(days=8), served=True), [("daemon", "broken", "daemon_down")]),
        (Platform(served=True), []),
        (
            Platform(heartbeat=before(hours=1), port_taken="127.0.0.1:3000"),
            [("UI port", "broken", "port_in_use"), ("daemon", "broken", "daemon_down")],
        ),
        (Platform(port_taken="127.0.0.1:3000"), []),
        (Platform(reference=NOW + timedelta(minutes=4)), []),
        (Platform(reference=NOW + timedelta(hours=8)), [("clock", "broken", "clock_wrong")]),
        (Platform(reference=before(hours=8)), [("clock", "broken", "clock_wrong")]),
        (Platform(newest_record=before(days=8)), []),
        (Platform(newest_record=NOW + timedelta(hours=8)), [("clock", "broken", "clock_wrong")]),
        (Platform(runs=(run(timedelta(minutes=29)),)), []),
        (Platform(runs=(run(timedelta(minutes=31)),)), [("run 01234567", "stale", "run_stuck")]),
        (Platform(runs=(run(timedelta(minutes=59), 7),)), []),
        (Platform(runs=(run(timedelta(minutes=61), 7),)), [("run 01234567", "broken", "run_stuck")]),
        (
            Platform(runs=(run(timedelta(minutes=61), 7),), daemon_runs=True),
            [("run 01234567", "healing", "run_stuck")],
        ),
        (
            Platform(folders=(FullFolder("PERENNIAL_HOME", "disk_full", "no space"),)),
            [("PERENNIAL_HOME", "broken", "disk_full")],
        ),
        (
            Platform(folders=(FullFolder("PERENNIAL_HOME", "disk_nearly_full", "0.2 GB free"),)),
            [("PERENNIAL_HOME", "stale", "disk_nearly_full")],
        ),
    ],
)
def test_findings__of_the_platform__are_what_was_observed(
    seen: Platform, found: list[tuple[str, Health, str]]
) -> None:
    reported = findings(seen, NOW)
    assert [(f.subject, f.health, f.reason_code) for f in reported] == found
    assert all(f.action for f in reported)


def test_findings__port_taken__causes_that_no_daemon_runs() -> None:
    seen = Platform(heartbeat=before(hours=1), port_taken="127.0.0.1:3000")
    assert [f.caused_by for f in findings(seen, NOW)] == [None, "UI port"]


def healing(code: str = "source_down", **known: object) -> Finding:
    found = Finding("market", "normalized_daily:2026-11-19", "healing", code, "reason", before(days=1), NOW)
    return Finding(**{**vars(found), **known})


def caused(seen: Platform, found: Finding) -> Finding:
    [one] = with_causes([found], seen, findings(seen, NOW))
    return one


def test_with_causes__findings_of_the_platform__come_before_those_of_partitions() -> None:
    down = Platform(heartbeat=before(hours=1))
    assert caused(down, healing()).caused_by == "daemon"
    assert caused(down, healing(caused_by="stock_basic:ALL")).caused_by == "stock_basic:ALL"
    assert caused(down, healing(health="broken")).caused_by is None
    wrong = Platform(reference=before(hours=8), daemon_runs=True, late_codes=("late",))
    assert caused(wrong, healing("late")).caused_by == "clock"
    assert caused(wrong, healing()).caused_by is None
    full = Platform(folders=(FullFolder("PERENNIAL_HOME", "read_only", "no"),), daemon_runs=True)
    assert caused(full, healing("lake_unwritable")).caused_by == "PERENNIAL_HOME"
    stuck = Platform(runs=(run(timedelta(hours=2), 7),), daemon_runs=True)
    assert caused(stuck, healing("missing", work_id=7)).caused_by == "run 01234567"
    assert caused(stuck, healing("missing", work_id=8)).caused_by is None


def test_with_causes__no_daemon__names_the_command() -> None:
    due = healing("missing", action=not_started("market"), needs_run=True)
    assert caused(Platform(daemon_runs=True), due).action == "nothing"
    assert caused(Platform(), due).action == "`perennial market heal`, or `perennial up`"
    waits = healing(action="nothing, unless it lasts")
    assert caused(Platform(), waits).action.endswith("no daemon runs: `perennial market heal`")
    assert caused(Platform(daemon_runs=True), waits).action == "nothing, unless it lasts"


def test_summary__no_daemon_and_work_waits__does_not_promise_an_attempt() -> None:
    assert not needs_person([healing()])
    assert summary([healing()]).startswith("1 healing: no action needed, next attempt ")
    assert summary([healing()], alone=True).startswith("1 healing: no daemon runs here")


def test_without_killed__run_of_a_killed_command__is_worked_on_by_nobody() -> None:
    killed = healing(run_id="run-1", action="nothing; it is being worked on")
    lives = replace(killed, run_id="run-2")
    dead, other = without_killed([killed, lives], Platform(killed_runs={"run-1"}), NOW)
    assert (dead.health, dead.reason_code, dead.next_attempt) == ("healing", "worker_lost", NOW)
    assert caused(Platform(), dead).action == "`perennial market heal`, or `perennial up`"
    assert other == lives

"""Calculating modules anew because a person wants it: job by job, and what comes out the same is the same."""

from __future__ import annotations

from datetime import timedelta

from services.carbon.reconcile import CarbonReconciler
from services.carbon.requests import request_modules
from services.reconcile import reconcile
from tests.integration.services.carbon.carbon_app import YEAR, CarbonApp


def recalculations(app: CarbonApp) -> list[tuple[str, str, int | None]]:
    rows = app.carbon.ledger.find("carbon.emission_recalc", limit=None)
    return [(row.key, row.status, row.parent_id) for row in rows if row.parent_id]


def test_all_types_of_a_module_are_calculated_and_nothing_changes(app: CarbonApp) -> None:
    before = app.content()
    done = app.run("recalculate", YEAR, "--module", "travel", "--wait", "--json")
    assert done.code == 0, done.err
    [job] = done.json["jobs"]
    assert app.content() == before
    parent = app.carbon.ledger.get(job)
    assert parent is not None
    assert (parent.kind, parent.status) == ("carbon.module_emission_recalc", "completed")
    assert recalculations(app) == [(f"data_entry_emissions:train|{YEAR}", "completed", job)]


def test_a_pass_that_died_over_it_leaves_it_to_the_next(app: CarbonApp) -> None:
    carbon = app.carbon
    [asked] = request_modules(carbon, ["travel"], int(YEAR))
    carbon.ledger.claim("carbon.module_emission_recalc", holder="worker:look", limit=5)
    app.reconcile()
    assert recalculations(app) == []
    later = carbon.ledger.machine_clock() + timedelta(minutes=2)
    carbon.ledger.sweep(finished_runs=[], now=later)
    app.reconcile()
    assert recalculations(app) == [(f"data_entry_emissions:train|{YEAR}", "completed", asked.id)]


def test_what_was_asked_for_is_done_though_it_was_put_off_once(app: CarbonApp) -> None:
    carbon = app.carbon
    [asked] = request_modules(carbon, ["travel"], int(YEAR))
    key = f"data_entry_emissions:train|{YEAR}"
    reconcile(CarbonReconciler(carbon))
    with carbon.ledger.lease("carbon.emission_recalc", [key], "a run that met others") as lease:
        lease.defer(key, "the lake is busy", not_before=carbon.clock(), reason_code="lake_busy")
    app.reconcile()
    assert recalculations(app) == [(key, "completed", asked.id)]


def test_a_locked_year_is_not_calculated_anew(app: CarbonApp) -> None:
    app.run("lock", YEAR, "--reason", "published")
    done = app.run("recalculate", YEAR, "--wait")
    assert done.code == 2
    assert "2025 is locked" in done.err
    assert recalculations(app) == []

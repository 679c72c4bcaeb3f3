"""Calculating modules anew because a person wants it: job by job, and what comes out the same is the same."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.shared.error import InvalidInput
from services.carbon.recalculation import find_stale_factors, recalculation_status
from services.carbon.reconcile import CarbonReconciler
from services.carbon.requests import request_recalculation
from services.reconcile import reconcile
from tests.integration.services.carbon.carbon_app import FACTORS, YEAR, CarbonApp


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
    [asked] = request_recalculation(carbon, int(YEAR), ["travel"]).jobs
    carbon.ledger.claim("carbon.module_emission_recalc", holder="worker:look", limit=5)
    app.reconcile()
    assert recalculations(app) == []
    later = carbon.ledger.machine_clock() + timedelta(minutes=2)
    carbon.ledger.sweep(finished_runs=[], now=later)
    app.reconcile()
    assert recalculations(app) == [(f"data_entry_emissions:train|{YEAR}", "completed", asked.id)]


def test_what_was_asked_for_is_done_though_it_was_put_off_once(app: CarbonApp) -> None:
    carbon = app.carbon
    [asked] = request_recalculation(carbon, int(YEAR), ["travel"]).jobs
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


def test_request_recalculation__of_a_type__is_one_job_with_a_pipeline(app: CarbonApp) -> None:
    carbon = app.carbon
    asked = request_recalculation(carbon, int(YEAR), ["train"])
    [job] = asked.jobs
    assert (job.kind, job.key) == ("carbon.emission_recalc", f"data_entry_emissions:train|{YEAR}")
    assert app.settle() == []
    assert [
        row.status for row in carbon.ledger.pipelines.members([asked.pipeline_id])[asked.pipeline_id]
    ] == ["completed"]


def test_request_recalculation__of_a_module__its_types_join_the_pipeline(app: CarbonApp) -> None:
    carbon = app.carbon
    asked = request_recalculation(carbon, int(YEAR), ["buildings"])
    assert app.settle() == []
    members = carbon.ledger.pipelines.members([asked.pipeline_id])[asked.pipeline_id]
    assert [(row.kind, row.status) for row in members] == [
        ("carbon.module_emission_recalc", "completed"),
        ("carbon.emission_recalc", "completed"),
    ]


@pytest.mark.parametrize("running", [False, True])
def test_request_recalculation__twice__is_the_same_job_and_pipeline(app: CarbonApp, running: bool) -> None:
    carbon = app.carbon
    first = request_recalculation(carbon, int(YEAR), ["train"])
    if running:
        carbon.ledger.claim("carbon.emission_recalc", holder="worker:one", limit=1)
    again = request_recalculation(carbon, int(YEAR), ["train"])
    assert (first.known, again.known) == (False, True)
    assert ([row.id for row in again.jobs], again.pipeline_id) == (
        [row.id for row in first.jobs],
        first.pipeline_id,
    )
    assert len(carbon.ledger.find("carbon.emission_recalc", status=("queued", "running"), limit=None)) == 1


def test_request_recalculation__after_the_first_ended__is_another_job(app: CarbonApp) -> None:
    carbon = app.carbon
    first = request_recalculation(carbon, int(YEAR), ["train"])
    assert app.settle() == []
    assert request_recalculation(carbon, int(YEAR), ["train"]).pipeline_id != first.pipeline_id


@pytest.mark.parametrize(
    ("year", "name", "code"),
    [(2025, "zeppelin", "unknown_type"), (2025, "plane", "no_entries"), (1066, "train", "year_outside")],
)
def test_request_recalculation__impossible__is_refused(
    app: CarbonApp, year: int, name: str, code: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        request_recalculation(app.carbon, year, [name])
    assert caught.value.reason_code == code
    assert caught.value.remedy


def test_stale_factors__from_an_upload_to_its_report__names_type_and_job(app: CarbonApp) -> None:
    newer = FACTORS.replace("8,g/km", "9,g/km")
    assert app.upload("factors", newer).code == 0
    [year] = find_stale_factors(app.carbon).years
    assert (year.year, year.reason_code, year.job_status) == (int(YEAR), "uploaded", "queued")
    app.reconcile()
    app.carbon.ledger.enqueue([v.request for v in app.carbon.plan().due if v.request])
    [part] = find_stale_factors(app.carbon).types
    assert (part.data_entry_type, part.year, part.job_status) == ("train", int(YEAR), "queued")
    states = {state.module: state.status for state in recalculation_status(app.carbon)}
    assert states == {"travel": "recalculating", "buildings": "current", "purchases": "current"}
    assert app.settle() == []
    assert find_stale_factors(app.carbon).types == []
    assert {state.status for state in recalculation_status(app.carbon)} == {"current"}

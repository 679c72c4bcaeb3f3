"""The years that have partitions: what is of other years is refused or waits, and says so."""

from __future__ import annotations

import pytest

from domain.shared.health import needs_person
from services.carbon.findings import find_problems
from services.carbon.reconcile import CarbonReconciler
from services.reconcile import observe_and_enqueue, reconcile
from tests.integration.services.carbon.carbon_app import FACTORS, UNITS, YEAR, CarbonApp


def test_upload__year_without_partitions__is_refused_until_the_setting_has_it(
    app: CarbonApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = app.file("units.csv", UNITS)
    refused = app.run("upload", "units", str(path), "--year", "2014")
    assert refused.code != 0
    assert "PERENNIAL_CARBON_YEARS=2014," in refused.err
    monkeypatch.setenv("PERENNIAL_CARBON_YEARS", "2014,2026")
    assert app.run("upload", "units", str(path), "--year", "2014").code == 0
    assert app.due() == {"units:2014"}


def test_plan__year_that_lost_its_partitions__waits_with_the_setting_as_its_reason(app: CarbonApp) -> None:
    assert app.upload("factors", FACTORS.replace(",8,g/km", ",9,g/km")).code == 0
    carbon = app.carbon
    carbon.years = range(2026, 2028)
    states = {v.key: (v.state, v.reason_code, v.due) for v in carbon.plan().verdicts}
    assert states[f"factors:{YEAR}"] == ("waiting", "year_outside", False)


def test_pass__work_of_a_year_that_lost_its_partitions__is_broken_and_not_dispatched(
    app: CarbonApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert app.upload("factors", FACTORS.replace(",8,g/km", ",9,g/km")).code == 0
    observe_and_enqueue(CarbonReconciler(app.carbon))  # a pass of before the setting
    ledger = app.carbon.ledger
    [row] = [row for row in ledger.current(CarbonReconciler.kinds) if row.key == f"factors:{YEAR}"]
    ledger.cancel(row.id)
    row = ledger.retry(row.id)  # what a person asked for is not withdrawn
    monkeypatch.setenv("PERENNIAL_CARBON_YEARS", "2026,2027")
    found = reconcile(CarbonReconciler(app.carbon))
    assert found.starts == ()
    kept = app.carbon.ledger.get(row.id)
    assert kept is not None
    assert kept.status == "queued"
    [finding] = [f for f in find_problems(app.carbon) if f.subject == row.key]
    assert (finding.health, finding.reason_code) == ("broken", "year_outside")
    assert "PERENNIAL_CARBON_YEARS" in finding.action
    assert needs_person([finding])

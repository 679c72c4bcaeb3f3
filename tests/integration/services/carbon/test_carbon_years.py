"""The years that have partitions: what is of other years is refused or waits, and says so."""

from __future__ import annotations

import pytest

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

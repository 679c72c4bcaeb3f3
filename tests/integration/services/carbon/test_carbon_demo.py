"""The demo's carbon part: a year from its files to its page, newer factors, and all as it was again."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.cli.carbon_demo import YEAR, show_carbon
from orchestration.environments import load_settings
from tests.command import said
from tests.integration.services.carbon.carbon_app import UNITS, CarbonApp


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestration.cli.carbon_demo.SCALE", 0.001)


def test_show_carbon__empty_home__every_number_is_again_what_it_was(
    empty_app: CarbonApp, capsys: pytest.CaptureFixture[str]
) -> None:
    done = show_carbon(load_settings(), shown=True)
    assert done.ok
    reported = done.document["carbon"]
    assert reported["recalculated"] == [effect["data_entry_type"] for effect in reported["foreseen"]]
    assert reported["recalculated"] == ["electricity", "plane"]
    changed = {row["module"]: row["change_mg"] for row in reported["difference"] if row["change_mg"]}
    foreseen = sum(effect["after_tonnes"] - effect["before_tonnes"] for effect in reported["foreseen"])
    assert changed.keys() == {"buildings", "travel", "all"}
    assert changed["all"] / 1e9 == pytest.approx(foreseen, abs=1e-8)
    assert empty_app.milligrams() == reported["report"]["total_mg"]
    page = Path(reported["page"]["file"])
    assert empty_app.home in page.parents
    assert "Sample University" in page.read_text(encoding="utf-8")
    shown = capsys.readouterr()
    assert str(page) in shown.out.splitlines()[-1]
    assert "it raises plane 2025 by 5.0 %" in shown.out


def test_a_year_that_somebody_works_on_is_left_alone(empty_app: CarbonApp) -> None:
    empty_app.upload_and_settle("units", UNITS)
    content = empty_app.content()
    left = show_carbon(load_settings(), shown=False)
    assert left.ok
    assert f"{YEAR} has files of" in left.document["carbon"]["left_out"]
    assert empty_app.content() == content


@pytest.mark.slow
def test_demo__results_without_a_factor__ends_healthy_and_names_them(
    empty_app: CarbonApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERENNIAL_DOMAINS", "carbon")
    monkeypatch.setattr("orchestration.cli.carbon_demo.SCALE", 0.02)
    ended = said("demo", "--json")
    assert (ended.code, ended.json["healthy"]) == (0, True), ended.err
    assert f"explained: carbon_reports:{YEAR}" in ended.err

"""The demo's carbon part: a year from its files to its page, newer factors, and all as it was again."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.cli.carbon_demo import YEAR, show_carbon
from orchestration.cli.runner import Interrupted
from orchestration.environments import load_settings
from tests.integration.carbon.office import UNITS, Office


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestration.cli.carbon_demo.SCALE", 0.001)


def test_what_was_cut_short_is_put_right_and_run_again_it_changes_only_what_it_undoes(
    empty_office: Office, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("orchestration.cli.carbon_demo.show_difference", killed)
        with pytest.raises(Interrupted):
            show_carbon(load_settings(), shown=True)
    newer = empty_office.milligrams()
    capsys.readouterr()

    first = show_carbon(load_settings(), shown=True)
    assert first.ok
    told = first.document["carbon"]
    assert told["recalculated"] == [effect["data_entry_type"] for effect in told["foreseen"]]
    assert told["recalculated"] == ["electricity", "plane"]
    changed = {row["module"]: row["change_mg"] for row in told["difference"] if row["change_mg"]}
    foreseen = sum(effect["after_tonnes"] - effect["before_tonnes"] for effect in told["foreseen"])
    assert changed.keys() == {"buildings", "travel", "all"}
    assert changed["all"] / 1e9 == pytest.approx(foreseen, abs=1e-8)
    assert newer - told["report"]["total_mg"] == changed["all"]
    assert empty_office.milligrams() == told["report"]["total_mg"]
    page = Path(told["page"]["file"])
    assert empty_office.home in page.parents
    assert "Sample University" in page.read_text(encoding="utf-8")
    shown = capsys.readouterr()
    assert str(page) in shown.out.splitlines()[-1]
    assert "it raises plane 2025 by 5.0 %" in shown.err
    content, uploads = empty_office.content(), len(empty_office.carbon.store.uploads.find())

    second = show_carbon(load_settings(), shown=False)
    assert second.ok
    assert second.document["carbon"] == told | {"page": second.document["carbon"]["page"]}
    assert len(empty_office.carbon.store.uploads.find()) == uploads + 2, "the newer factors, and the older"
    differing = {
        table for (table, _), version in empty_office.content().items() if version not in content.values()
    }
    assert differing <= {"factors", "factor_versions", "data_entry_emissions"}, "they name other versions"


def test_a_year_that_somebody_works_on_is_left_alone(empty_office: Office) -> None:
    assert empty_office.upload("units", UNITS, "--wait").code == 0
    content = empty_office.content()
    left = show_carbon(load_settings(), shown=False)
    assert left.ok
    assert f"{YEAR} has files of" in left.document["carbon"]["left_out"]
    assert empty_office.content() == content

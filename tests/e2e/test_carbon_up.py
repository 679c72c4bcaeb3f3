"""Carbon under a daemon: files come in, the report follows by itself, and one tag leads to every run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from assets.policies.tags import PIPELINE
from tests.e2e.running import Running
from tests.integration.services.carbon.carbon_app import FACTORS, PAPER, TRAIN, UNITS

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

YEAR = "2031"
"""No other test's."""
TOTAL = 1000 * 2 * 8_000 + 500 * 30_000 + 100 * 700_000


def test_upload__factor_file__becomes_a_report_under_one_tag(page: Page, up: Running, tmp_path: Path) -> None:
    _upload(up, tmp_path, "units", UNITS)
    _upload(up, tmp_path, "factors", FACTORS)
    _upload(up, tmp_path, "data", TRAIN, "--type", "train")
    _upload(up, tmp_path, "data", PAPER, "--type", "paper")
    up.wait(lambda: _total(up) == TOTAL, 120, "the first report")

    reported = _upload(up, tmp_path, "factors", FACTORS.replace(",8,g/km", ",9,g/km"))
    up.wait(lambda: _total(up) == TOTAL + 2_000_000, 90, "the report after the new factors")

    tag = {"key": PIPELINE, "value": reported["pipeline"]}

    def done() -> list[dict[str, Any]]:
        runs = up.runs(tags=[tag])
        ended = all(run["status"] == "SUCCESS" for run in runs)
        return runs if ended and {"carbon_reports"} in [run["tables"] for run in runs] else []

    runs = up.wait(done, 60, "the runs of the pipeline")
    tables = sorted(table for run in runs for table in run["tables"])
    assert tables == [
        "carbon_report_modules",
        "carbon_reports",
        "data_entry_emissions",
        "factor_versions",
        "factors",
    ]
    page.goto(f"/runs?q[0]=tag%3A{quote(PIPELINE, safe='')}%3D{reported['pipeline']}")
    for run in runs:
        page.get_by_text(run["runId"][:8]).first.wait_for()
    page.goto(f"/assets/carbon/data_entry_emissions?view=partitions&partition=train%7C{YEAR}")
    page.get_by_text("factors_used", exact=True).wait_for()
    page.get_by_text("tonnes", exact=True).first.wait_for()


def test_inbox__good_and_wrong_file__are_imported_and_refused(up: Running) -> None:
    inbox = up.settings.home / "inbox"
    for kind, name, text in (
        ("units", "units.csv", UNITS),
        ("factors", "bad.csv", "data_entry_type,unit\ntrain,g/km\n"),
    ):
        folder = inbox / kind / "2032"
        folder.mkdir(parents=True)
        (folder / name).write_text(text)
    taken, refused = inbox / "taken" / "units" / "2032" / "units.csv", inbox / "refused" / "factors" / "2032"
    up.wait(taken.exists, 120, "the file to be taken")
    up.wait(lambda: list(refused.glob("*.report.txt")), 60, "the other to be refused")
    said = (refused / "bad.csv.report.txt").read_text()
    assert "column value: is missing in the header" in said

    def is_in() -> bool:
        plan = json.loads(up.command("plan", "carbon", "--json").stdout)
        states = {(v["table"], v["partition"]): v["state"] for v in plan["verdicts"]}
        return states.get(("units", "2032")) == "healthy"

    up.wait(is_in, 60, "the units of the file")


def _upload(up: Running, folder: Path, kind: str, text: str, *options: str) -> dict[str, Any]:
    path = folder / f"{kind}.csv"
    path.write_text(text)
    done = up.command("carbon", "upload", kind, str(path), "--year", YEAR, "--json", *options)
    assert done.returncode == 0, done.stderr
    [reported] = json.loads(done.stdout)["files"]
    found: dict[str, Any] = reported
    return found


def _total(up: Running) -> int | None:
    done = up.command("carbon", "report", YEAR, "--json")
    return int(json.loads(done.stdout)["total_mg"]) if done.returncode == 0 else None

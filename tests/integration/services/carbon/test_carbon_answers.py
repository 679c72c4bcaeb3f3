"""What the carbon commands answer: people a sentence, programs one JSON document, whatever was asked."""

from __future__ import annotations

import csv
import getpass
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.integration.services.carbon.carbon_app import FACTORS, PAPER, UNITS, YEAR, CarbonApp


def test_locking_is_answered_for_programs_too(app: CarbonApp) -> None:
    locked = app.run("lock", YEAR, "--reason", "published", "--json").json
    assert locked.pop("at").startswith("20")
    assert locked.pop("by")
    [gap] = locked.pop("notes")
    assert "fallback factor" in gap
    assert locked == {"year": 2025, "locked": True, "reason": "published"}
    again = app.run("lock", YEAR, "--reason", "published")
    assert (again.code, again.err) == (2, "error: 2025 is locked already\n")
    freed = app.run("unlock", YEAR, "--reason", "a mistake", "--json").json
    assert freed.pop("by")
    assert freed == {"year": 2025, "locked": False, "reason": "a mistake", "due": []}
    again = app.run("unlock", YEAR, "--reason", "a mistake")
    assert (again.code, again.err) == (2, "error: 2025 is not locked\n")


def test_a_lock_needs_a_reason_and_a_year_that_has_a_report(app: CarbonApp) -> None:
    for command in ("lock", "unlock"):
        said = app.run(command, YEAR, "--reason", "  ")
        assert said.code == 2
        assert said.err.startswith("error: a reason is needed\nremedy: --reason TEXT")
    said = app.run("lock", "2052", "--reason", "published")
    assert said.code == 2
    assert said.err.startswith("error: there is no report of 2052\n")
    assert not app.carbon.store.year_locks.held()
    for wrong in ("the-year", "20.25"):
        said = app.run("lock", wrong, "--reason", "published")
        assert said.code == 2
        assert "Invalid value" in said.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("unlock", "9" * 26, "--reason", "x"),
        ("recalculate", "9" * 26),
        ("pipelines", "--limit", "9" * 26),
        ("report", YEAR, "--as-of", "9999-12-31"),
        ("report", YEAR, "--as-of", "9999-12-31T23:59-12:00"),
        ("report", YEAR, "--html", "."),
    ],
)
def test_what_nobody_can_mean_is_refused_in_words(app: CarbonApp, arguments: tuple[str, ...]) -> None:
    said = app.run(*arguments)
    assert (said.code, said.out, "Traceback" in said.err) == (2, "", False)


def test_of_a_day_that_is_yet_to_come_there_is_no_report_and_of_this_one_there_is_what_is_known(
    app: CarbonApp,
) -> None:
    """As it was at the end of this day is what it is now: with all that is known to be missing in it."""
    today = datetime.now(UTC)
    said = app.run("report", YEAR, "--as-of", f"{today + timedelta(days=2):%Y-%m-%d}")
    assert said.code == 2
    assert "is yet to come" in said.err
    app.upload("factors", FACTORS.replace(",8,g/km", ",9,g/km"))
    said = app.run("report", YEAR, "--as-of", f"{today:%Y-%m-%d}")
    assert (said.code, "not up to date" in said.err) == (0, True)


def test_a_lock_on_an_old_report_says_that_it_is_old_and_unlocking_what_is_due(
    app: CarbonApp,
) -> None:
    app.upload("factors", FACTORS.replace(",8,g/km", ",9,g/km"))
    said = app.run("lock", YEAR, "--reason", "published")
    assert said.code == 0
    assert "warning: factors 2025 is not up to date" in said.err
    assert app.run("unlock", YEAR, "--reason", "too early").out == "2025 is unlocked; due: factors:2025\n"


def test_a_page_is_answered_with_its_report(app: CarbonApp, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    reported = app.run("report", YEAR, "--html", str(page), "--json").json
    assert reported.pop("page") == {"file": str(page), "bytes": page.stat().st_size}
    assert reported == app.run("report", YEAR, "--json").json
    files = page.read_text(encoding="utf-8").partition("Files that the figures come from")[2]
    assert [files.count(f"{kind}.csv") for kind in ("units", "factors", "data")] == [1, 1, 3]
    assert files.count(getpass.getuser()) == 5
    assert app.run("report", YEAR, "--html", str(page)).out.startswith(f"{page}: ")
    said = app.run("report", YEAR, "--csv", "--json")
    assert (said.code, said.out) == (2, "")
    assert "two answers" in said.err
    beside = app.run("report", YEAR, "--csv", "--html", str(page)).out
    assert beside == app.run("report", YEAR, "--csv").out
    said = app.run("report", YEAR, "--html", str(tmp_path / "none" / "report.html"), "--json")
    assert (said.code, said.out) == (2, "")
    assert "cannot be written" in said.err


@pytest.mark.parametrize("what", ["units", "factors", "plane"])
def test_a_template_is_the_same_for_people_and_programs(empty_app: CarbonApp, what: str) -> None:
    reported = empty_app.run("template", what, "--year", YEAR, "--json").json
    rows = list(csv.reader(io.StringIO(empty_app.run("template", what, "--year", YEAR).out)))
    assert reported["columns"] == rows[0]
    assert [list(row.values()) for row in reported["rows"]] == rows[1:]


def test_the_sample_is_written_where_it_is_wanted(empty_app: CarbonApp, tmp_path: Path) -> None:
    folder = tmp_path / "sample"
    reported = empty_app.run("sample", str(folder), "--scale", "0.001", "--json").json
    assert sorted(Path(one["file"]) for one in reported["files"]) == sorted(folder.iterdir())
    assert {one["kind"] for one in reported["files"]} == {"units", "factors", "data"}
    assert (folder / "factors-2025-revised.csv").exists()
    (tmp_path / "file").write_text("")
    said = empty_app.run("sample", str(tmp_path / "file"), "--json")
    assert (said.code, said.out) == (2, "")
    assert "cannot be written" in said.err


def test_every_answer_for_programs_is_one_document(app: CarbonApp) -> None:
    for arguments in (
        ("report", YEAR),
        ("diff", YEAR, "--from", "2020-01-01T00:00"),
        ("explain", YEAR),
        ("stale",),
        ("pipelines",),
        ("pipelines", "--statistics", "24"),
        ("types",),
        ("heal",),
    ):
        said = app.run(*arguments, "--json")
        if said.code == 0:
            json.loads(said.out)
        else:
            assert said.out == "", arguments
            assert said.err.startswith("error: "), arguments


def test_a_file_that_is_read_otherwise_is_another_file(app: CarbonApp) -> None:
    """The remedy for numbers that were read wrongly is to upload the file again and say how to read them."""
    text = 'unit_id,distance,country\nPHY,"1,234",CH\n'
    assert app.upload("data", text, "--type", "train", "--decimal", "comma").code == 0
    [again] = app.upload("data", text, "--type", "train", "--decimal", "comma", "--json").json["files"]
    assert again["known_already"]
    [other] = app.upload("data", text, "--type", "train", "--decimal", "point", "--json").json["files"]
    assert not other["known_already"]
    assert app.carbon.staging.rows(other["pipeline"]).column("quantity").to_pylist() == [1234.0]


def test_of_several_files_one_that_cannot_be_read_is_reported_before_any_is_taken(
    app: CarbonApp,
) -> None:
    before = len(app.carbon.store.uploads.find())
    good = app.file("more.csv", PAPER.replace("100", "300"))
    said = app.run(
        "upload", "data", str(good), str(good.with_name("none.csv")), "--type", "paper", "--year", YEAR
    )
    assert said.code == 2
    assert "none.csv cannot be read: No such file" in said.err
    assert len(app.carbon.store.uploads.find()) == before


def test_of_several_files_one_that_a_lock_refuses_holds_no_other_back(app: CarbonApp) -> None:
    assert app.run("lock", YEAR, "--reason", "published").code == 0
    header, row = PAPER.splitlines()
    locked = app.file("locked.csv", f"{header},year\n{row},{YEAR}\n")
    other = app.file("other.csv", f"{header},year\n{row},2026\n")
    units = app.file("units26.csv", UNITS)
    assert app.run("upload", "units", str(units), "--year", "2026").code == 0
    said = app.run("upload", "data", str(locked), str(other), "--type", "paper", "--wait", "--json")
    assert said.code == 1
    assert [one.get("refused", False) for one in said.json["files"]] == [True, False]
    assert "is locked" in said.json["files"][0]["reason"]
    assert app.run("report", "2026").code == 0


@pytest.mark.parametrize("width", ["80", "100"])
def test_pipelines__on_a_small_terminal__breaks_no_word(
    app: CarbonApp, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    shown = app.run("pipelines").out
    found = app.run("pipelines", "--json").json["pipelines"]
    for one in found:
        assert one["pipeline"] in shown.split()
        assert one["file"] in shown.split()
    assert "aggregation SUCCESS" in shown
    assert max(map(len, shown.splitlines())) <= int(width)
    [work] = [
        line for line in app.run("pipelines", found[0]["pipeline"]).out.splitlines() if "completed" in line
    ][:1]
    assert "data_entries:paper|2025" in work.split()

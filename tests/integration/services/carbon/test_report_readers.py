"""Every way to read a report says what of it is outdated, altered or under way."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from domain.carbon.observed import Observed
from domain.carbon.report_state import ReportState
from domain.shared.clock import machine_clock
from services.carbon.report import read_consistently, report_rows
from tests.integration.services.carbon.carbon_app import (
    FACTORS,
    PAPER,
    TRAIN,
    UNITS,
    YEAR,
    CarbonApp,
)

MORE = TRAIN + "ART,700,1,CH\n"


def readers(app: CarbonApp, page: Path) -> dict[str, str]:
    """The notes of each way to read the report, without what its factors leave open."""
    assert app.run("report", YEAR, "--html", str(page)).code == 0
    today = f"{machine_clock():%Y-%m-%d}"
    return {
        "table": app.run("report", YEAR).err,
        "csv": "\n".join(
            line
            for line in app.run("report", YEAR, "--csv").err.splitlines()
            if not line.endswith("fallback factor")
        ),
        "html": app.run("report", YEAR, "--html", str(page)).err,
        "diff": app.run("diff", YEAR, "--from", today).err,
        "json": "\n".join(app.run("report", YEAR, "--json").json["notes"]),
        "diff json": "\n".join(app.run("diff", YEAR, "--from", today, "--json").json["notes"]),
    }


def head(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("</header>")[0]


def test_readers__of_an_outdated_report__all_say_so(app: CarbonApp, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert set(readers(app, page).values()) == {""}
    assert "Up to date" in head(page)
    assert app.upload("data", MORE, "--type", "train").code == 0
    assert "1 type not up to date" in _shown(app, page)  # the file waits
    app.reconcile()
    app.reconcile()
    assert "1 type not up to date" in _shown(app, page)  # its emissions are new, the report is not
    assert app.run("lock", YEAR, "--reason", "published").code == 0
    assert "1 type not up to date" in _shown(app, page)
    text = page.read_text(encoding="utf-8")
    assert "Nothing is known to be missing or old" not in text
    for what, said in readers(app, page).items():
        assert "2025 is locked: published" in said, what


def test_page__of_a_year_after_an_outdated_one__compares_with_nothing(app: CarbonApp, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    for kind, text, options in (
        ("units", UNITS, ()),
        ("factors", FACTORS, ()),
        ("data", TRAIN, ("--type", "train")),
    ):
        file = app.file(f"next-{kind}.csv", text)
        assert app.run("upload", kind, str(file), "--year", "2026", *options).code == 0
    assert app.settle() == []

    def shown() -> str:
        assert app.run("report", "2026", "--html", str(page)).code == 0
        return page.read_text(encoding="utf-8")

    assert f"Against {YEAR}" in shown()
    assert app.upload("data", MORE, "--type", "train").code == 0
    assert f"{YEAR} <small>not up to date</small>" in shown()
    assert f"Against {YEAR}" not in shown()
    assert "Up to date" in head(page)
    assert app.run("lock", YEAR, "--reason", "published").code == 0
    assert f"Against {YEAR}" in shown(), "people compare with what was published"
    _alter(app)
    assert f"Against {YEAR}" not in shown(), "nobody published what was altered"


def _shown(app: CarbonApp, page: Path) -> str:
    for what, said in readers(app, page).items():
        assert "old in this report: train" in said, what
    assert "Up to date" not in head(page)
    return head(page)


def test_readers__of_left_out_rows__all_say_so(app: CarbonApp, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    wrong = TRAIN + "ART,-5,1,CH\n"
    app.upload_and_settle("data", wrong, "--type", "train", "--accept-valid", name="trains.csv")
    for what, said in readers(app, page).items():
        assert "train: 1 of 3 rows of trains.csv were left out" in said, what
    assert "Up to date" not in head(page)
    text = page.read_text(encoding="utf-8")
    assert "Nothing is known to be missing or old" not in text
    assert "2 of 3" in text.partition("Files that the figures come from")[2]
    app.upload_and_settle("data", MORE, "--type", "train")
    assert set(readers(app, page).values()) == {""}


def test_readers__of_an_altered_report__all_say_so(app: CarbonApp, tmp_path: Path) -> None:
    assert app.run("lock", YEAR, "--reason", "published").code == 0
    page = tmp_path / "report.html"
    _alter(app)
    for what, said in readers(app, page).items():
        assert "these numbers are not what was calculated" in said, what
    assert "Not what was calculated" in head(page)


def _alter(app: CarbonApp) -> None:
    """Somebody writes ten times the masses into the year's report."""
    lake = app.carbon.lake
    rows = lake.query(f"SELECT * FROM carbon.carbon_reports WHERE year = {YEAR}")
    column = rows.schema.get_field_index("own_mg")
    tenfold = pc.multiply(rows.column("own_mg"), pa.scalar(10, pa.int64()))
    lake.replace("carbon.carbon_reports", YEAR, rows.set_column(column, rows.schema.field(column), tenfold))


def _commit(app: CarbonApp) -> None:
    """Somebody writes another report than the one that was observed."""
    lake = app.carbon.lake
    rows = lake.query("SELECT * FROM carbon.carbon_reports")
    lake.replace("carbon.carbon_reports", YEAR, rows.slice(0, rows.num_rows - 1))


def test_read__during_a_commit__is_repeated_with_the_new_state(app: CarbonApp) -> None:
    carbon, readings = app.carbon, []

    def read(_: Observed, state: ReportState) -> tuple[int, ReportState]:
        if not readings:
            _commit(app)
        readings.append(report_rows(carbon, int(YEAR), notes=state.notes).total_mg)
        return readings[-1], state

    _, state = read_consistently(carbon, int(YEAR), read)
    assert len(readings) == 2
    assert state.altered
    assert not state.unstable


def test_pipeline__before_its_numbers_are_in_the_report__is_no_success(app: CarbonApp) -> None:
    def status(file: str) -> tuple[str, str]:
        found = app.run("pipelines", "--json").json["pipelines"]
        [one] = [row for row in found if row["file"] == file]
        assert app.run("pipelines", one["pipeline"], "--json").json["status"] == one["status"]
        return one["status"], one["reason"]

    assert app.upload("data", MORE, "--type", "train", name="more.csv").code == 0
    app.reconcile()
    app.reconcile()
    assert app.upload("data", PAPER.replace("100", "200"), "--type", "paper", name="paper.csv").code == 0
    assert status("more.csv") == ("RUNNING", "")  # calculated; the report waits for the paper
    assert app.run("lock", YEAR, "--reason", "published").code == 0
    app.reconcile()
    assert status("more.csv") == ("PARTIAL", "2025 is locked: published")
    assert status("paper.csv") == ("NOT_STARTED", "2025 is locked: published")
    assert app.run("unlock", YEAR, "--reason", "too early").code == 0
    assert app.settle() == []
    assert (status("more.csv"), status("paper.csv")) == (("SUCCESS", ""), ("SUCCESS", ""))


def _foreseen(app: CarbonApp, kind: str, text: str, *options: str) -> tuple[dict[str, float], list[str]]:
    """The tonnes that the file adds, by type, and the notes."""
    [found] = app.upload(kind, text, *options, "--what-if", "--json").json["files"]
    effects = found["what_if"]["effects"]
    return (
        {e["data_entry_type"]: round(e["after_tonnes"] - e["before_tonnes"], 6) for e in effects},
        found["what_if"]["notes"],
    )


def test_what_if__beside_other_uploads__has_the_effect_of_its_file_alone(app: CarbonApp) -> None:
    dearer = FACTORS.replace(",8,g/km", ",9,g/km")
    alone = _foreseen(app, "factors", dearer)
    assert alone == ({"train": 0.002}, [])
    assert app.upload("data", TRAIN.replace("500", "50500"), "--type", "train").code == 0
    effects, notes = _foreseen(app, "factors", dearer)
    assert effects == alone[0]
    assert any(note.startswith("data_entries train|2025 is not up to date: ") for note in notes)
    app.reconcile()  # the entries are in now, and their emissions are not
    effects, notes = _foreseen(app, "factors", dearer)
    assert effects == alone[0]  # the 50,000 km more are in both
    assert "the report of 2025 is not what these numbers begin with" in notes
    assert _foreseen(app, "data", MORE, "--type", "train")[0] == {"train": round(0.0056 - 1.5, 6)}
    assert app.settle() == []
    assert _foreseen(app, "factors", dearer) == alone
    assert app.run("lock", YEAR, "--reason", "published").code == 0
    said = app.upload("factors", dearer, "--what-if")
    assert said.code == 0
    assert "2025 is locked: published; the file would be refused" in said.err


def test_explain__of_a_changed_entry__shows_nothing_of_the_new_entry(app: CarbonApp) -> None:
    """The same line of another file has the same entry id, and is another entry."""
    app.upload_and_settle("data", "unit_id,mass,kind\nART,100,virgin\n", "--type", "paper")
    assert app.run("explain", YEAR, "--type", "paper", "--json").json["notes"] == []
    newer = "unit_id,mass,kind\nPHY,900,recycled\n"
    assert app.upload("data", newer, "--type", "paper", name="q3.csv").code == 0
    app.reconcile()  # the entries are in now, and their emissions are not
    found = app.run("explain", YEAR, "--json").json
    assert "old in this report: paper" in found["notes"]
    [paper] = [row for row in found["results"] if row["data_entry_type"] == "paper"]
    assert (paper["entry_id"], paper["unit_id"], paper["entry_changed"]) == ("line 2", "ART", True)
    now = ("quantity", "unit", "classification", "details", "data_file", "data_line", "data_by", "data_at")
    assert {paper[name] for name in now} == {None}
    assert all(row["data_file"] for row in found["results"] if row is not paper)
    said = app.run("explain", YEAR, "--type", "paper", "--entry", "line 2")
    assert (
        "    the entries of paper have changed since; recalculation is due\n    no factor fits it" in said.out
    )
    assert "q3.csv" not in said.out
    assert "old in this report: paper" in said.err
    page = app.folder / "page.html"
    assert app.run("report", YEAR, "--html", str(page)).code == 0
    missing = (
        page.read_text(encoding="utf-8")
        .partition("Entries that no factor matches")[2]
        .partition("</table>")[0]
    )
    assert "entries that have changed since" in missing
    assert "recycled" not in missing
    assert app.settle() == []
    [paper] = app.run("explain", YEAR, "--type", "paper", "--json").json["results"]
    assert (paper["data_file"], paper["quantity"], paper["entry_changed"]) == ("q3.csv", 900, False)


def withhold(app: CarbonApp, table: str, topic: str) -> Path:
    """Make the file of a type unavailable: too many levels of links."""
    folder = app.home / "lake" / "warehouse" / "carbon" / table
    [path] = [p for p in folder.rglob("*.parquet") if topic in str(p)]
    path.rename(path.with_suffix(".whole"))
    path.symlink_to(path)
    return path


def restore(path: Path) -> None:
    path.unlink()
    path.with_suffix(".whole").rename(path)


def test_unavailable_entries__delay_their_type_alone(app: CarbonApp, tmp_path: Path) -> None:
    before = app.milligrams()
    path = withhold(app, "data_entries", "paper")
    app.upload_and_settle("data", MORE, "--type", "train")
    assert app.milligrams() > before
    notes = app.run("report", YEAR, "--json").json["notes"]
    assert notes[0] == "old in this report: paper"
    assert any(path.name in note for note in notes)
    found = next(v for v in app.carbon.plan().verdicts if v.key == f"data_entries:paper|{YEAR}")
    assert (found.state, found.reason_code) == ("unavailable", "lake_unavailable")
    restore(path)
    assert set(readers(app, tmp_path / "report.html").values()) == {""}


@pytest.mark.parametrize(
    ("table", "topic"), [("data_entry_emissions", "train"), ("data_entries", "train"), ("factors", "factors")]
)
def test_report__of_what_cannot_be_read__is_given_without_its_fallbacks(
    app: CarbonApp, table: str, topic: str
) -> None:
    before = app.run("report", YEAR, "--json").json
    path = withhold(app, table, topic)
    now = app.run("report", YEAR, "--json").json
    assert (now["total_mg"], now["fallbacks"]) == (before["total_mg"], [])
    assert app.upload("data", MORE, "--type", "train").code == 0
    restore(path)


def test_unavailable_emissions__are_not_overwritten_and_delay_no_other_type(app: CarbonApp) -> None:
    path = withhold(app, "data_entry_emissions", "paper")
    whole = app.content()["data_entry_emissions", f"train|{YEAR}"]
    for name, more in (("train", MORE), ("paper", PAPER + "SCI,5,recycled\n")):
        assert app.upload("data", more, "--type", name).code == 0
    app.settle()
    assert app.run("recalculate", YEAR).code == 0, "a person may ask for all of them at once"
    app.reconcile()
    assert app.content()["data_entry_emissions", f"train|{YEAR}"] != whole
    assert path.is_symlink()
    report = next(v for v in app.carbon.plan().verdicts if v.key == f"carbon_reports:{YEAR}")
    assert (report.state, report.reason_code) == ("waiting", "input_missing")
    assert path.name in report.reason
    restore(path)
    [put_off] = app.carbon.ledger.find(key_prefix=f"data_entry_emissions:paper|{YEAR}", status="deferred")
    assert put_off.reason_code == "lake_unavailable"
    app.carbon.ledger.retry(put_off.id)
    assert app.settle() == []
    assert app.due() == set()
    assert not app.run("report", YEAR).err

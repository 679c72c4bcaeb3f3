"""Every way to read a report says what of it is outdated, altered or under way."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from domain.carbon.observed import Observed
from domain.carbon.report_state import ReportState
from domain.shared.clock import machine_clock
from services.carbon.consistent_read import read_consistently
from services.carbon.report import report_rows
from tests.integration.carbon.office import FACTORS, PAPER, TRAIN, UNITS, YEAR, Office

MORE = TRAIN + "ART,700,1,CH\n"


def readers(office: Office, page: Path) -> dict[str, str]:
    """The notes of each way to read the report."""
    assert office.run("report", YEAR, "--html", str(page)).code == 0
    today = f"{machine_clock():%Y-%m-%d}"
    return {
        "table": office.run("report", YEAR).err,
        "csv": office.run("report", YEAR, "--csv").err,
        "html": office.run("report", YEAR, "--html", str(page)).err,
        "diff": office.run("diff", YEAR, "--from", today).err,
        "json": "\n".join(office.run("report", YEAR, "--json").json["notes"]),
        "diff json": "\n".join(office.run("diff", YEAR, "--from", today, "--json").json["notes"]),
    }


def head(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("</header>")[0]


def test_readers__of_an_outdated_report__all_say_so(office: Office, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert set(readers(office, page).values()) == {""}
    assert "Up to date" in head(page)
    assert office.upload("data", MORE, "--type", "train").code == 0
    assert "1 type not up to date" in _shown(office, page)  # the file waits
    office.reconcile()
    office.reconcile()
    assert "1 type not up to date" in _shown(office, page)  # its emissions are new, the report is not
    assert office.run("lock", YEAR, "--reason", "published").code == 0
    assert "1 type not up to date" in _shown(office, page)
    text = page.read_text(encoding="utf-8")
    assert "Nothing is known to be missing or old" not in text
    for what, said in readers(office, page).items():
        assert "2025 is locked: published" in said, what


def test_page__of_a_year_after_an_outdated_one__compares_with_nothing(office: Office, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    for kind, text, options in (
        ("units", UNITS, ()),
        ("factors", FACTORS, ()),
        ("data", TRAIN, ("--type", "train", "--wait")),
    ):
        file = office.file(f"next-{kind}.csv", text)
        assert office.run("upload", kind, str(file), "--year", "2026", *options).code == 0

    def shown() -> str:
        assert office.run("report", "2026", "--html", str(page)).code == 0
        return page.read_text(encoding="utf-8")

    assert f"Against {YEAR}" in shown()
    assert office.upload("data", MORE, "--type", "train").code == 0
    assert f"{YEAR} <small>not up to date</small>" in shown()
    assert f"Against {YEAR}" not in shown()
    assert "Up to date" in head(page)
    assert office.run("lock", YEAR, "--reason", "published").code == 0
    assert f"Against {YEAR}" in shown(), "people compare with what was published"
    _alter(office)
    assert f"Against {YEAR}" not in shown(), "nobody published what was altered"


def _shown(office: Office, page: Path) -> str:
    for what, said in readers(office, page).items():
        assert "old in this report: train" in said, what
    assert "Up to date" not in head(page)
    return head(page)


def test_readers__of_left_out_rows__all_say_so(office: Office, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    wrong = TRAIN + "ART,-5,1,CH\n"
    done = office.upload("data", wrong, "--type", "train", "--accept-valid", "--wait", name="trains.csv")
    assert done.code == 0
    for what, said in readers(office, page).items():
        assert "train: 1 of 3 rows of trains.csv were left out" in said, what
    assert "Up to date" not in head(page)
    text = page.read_text(encoding="utf-8")
    assert "Nothing is known to be missing or old" not in text
    assert "2 of 3" in text.partition("Files that the figures come from")[2]
    assert office.upload("data", MORE, "--type", "train", "--wait").code == 0
    assert set(readers(office, page).values()) == {""}


def test_left_out_factors__are_noted_until_a_newer_file_of_their_types(office: Office) -> None:
    head, train = FACTORS.splitlines()[0], 'train,,"{""country"": ""%s""}",%s,g/km,sample'
    wrong = "\n".join([head, train % ("CH", "8"), train % ("world", "thirty")])
    assert office.upload("factors", wrong, "--accept-valid", "--wait", name="trains.csv").code == 0
    found = "factors: 1 of 2 rows of trains.csv were left out"
    assert found in office.run("report", YEAR).err

    others = head + '\npaper,,"{""kind"": ""recycled""}",0.6,kg/kg,sample'
    assert office.upload("factors", others, "--wait", name="papers.csv").code == 0
    assert found in office.run("report", YEAR).err, "a file of other types says nothing of trains"

    whole = "\n".join([head, train % ("CH", "8"), train % ("world", "30")])
    assert office.upload("factors", whole, "--wait", name="trains-2.csv").code == 0
    assert office.run("report", YEAR).err == ""


def test_readers__of_an_altered_report__all_say_so(office: Office, tmp_path: Path) -> None:
    assert office.run("lock", YEAR, "--reason", "published").code == 0
    page = tmp_path / "report.html"
    _alter(office)
    for what, said in readers(office, page).items():
        assert "these numbers are not what was calculated" in said, what
    assert "Not what was calculated" in head(page)


def _alter(office: Office) -> None:
    """Somebody writes ten times the masses into the year's report."""
    lake = office.carbon.lake
    rows = lake.query(f"SELECT * FROM carbon.carbon_reports WHERE year = {YEAR}")
    column = rows.schema.get_field_index("own_mg")
    tenfold = pc.multiply(rows.column("own_mg"), pa.scalar(10, pa.int64()))
    lake.replace("carbon.carbon_reports", YEAR, rows.set_column(column, rows.schema.field(column), tenfold))


def _commit(office: Office) -> None:
    """Somebody writes another report than the one that was observed."""
    lake = office.carbon.lake
    rows = lake.query("SELECT * FROM carbon.carbon_reports")
    lake.replace("carbon.carbon_reports", YEAR, rows.slice(0, rows.num_rows - 1))


def test_read__during_a_commit__is_repeated_with_the_new_state(office: Office) -> None:
    carbon, readings = office.carbon, []

    def read(_: Observed, state: ReportState) -> tuple[int, ReportState]:
        if not readings:
            _commit(office)
        readings.append(report_rows(carbon, int(YEAR), notes=state.notes).total_mg)
        return readings[-1], state

    _, state = read_consistently(carbon, int(YEAR), read)
    assert len(readings) == 2
    assert state.altered
    assert not state.unstable


@pytest.mark.slow
def test_read__of_a_year_that_keeps_changing__is_marked_unstable(office: Office) -> None:
    carbon, readings = office.carbon, []

    def read(_: Observed, state: ReportState) -> ReportState:
        readings.append(state)
        if carbon.lake.version("carbon.carbon_reports", YEAR).rows > 1:
            _commit(office)
        return state

    assert read_consistently(carbon, int(YEAR), read).unstable
    assert [one.unstable for one in readings] == [False, False, False, True]


def test_pipeline__before_its_numbers_are_in_the_report__is_no_success(office: Office) -> None:
    def status(file: str) -> tuple[str, str]:
        found = office.run("pipelines", "--json").json["pipelines"]
        [one] = [row for row in found if row["file"] == file]
        assert office.run("pipelines", one["pipeline"], "--json").json["status"] == one["status"]
        return one["status"], one["reason"]

    assert office.upload("data", MORE, "--type", "train", name="more.csv").code == 0
    office.reconcile()
    office.reconcile()
    assert office.upload("data", PAPER.replace("100", "200"), "--type", "paper", name="paper.csv").code == 0
    assert status("more.csv") == ("RUNNING", "")  # calculated; the report waits for the paper
    assert office.run("lock", YEAR, "--reason", "published").code == 0
    office.reconcile()
    assert status("more.csv") == ("PARTIAL", "2025 is locked: published")
    assert status("paper.csv") == ("NOT_STARTED", "2025 is locked: published")
    assert office.run("unlock", YEAR, "--reason", "too early").code == 0
    assert office.run("heal").code == 0
    assert (status("more.csv"), status("paper.csv")) == (("SUCCESS", ""), ("SUCCESS", ""))


def _foreseen(office: Office, kind: str, text: str, *options: str) -> tuple[dict[str, float], list[str]]:
    """The tonnes that the file adds, by type, and the notes."""
    [found] = office.upload(kind, text, *options, "--what-if", "--json").json["files"]
    effects = found["what_if"]["effects"]
    return (
        {e["data_entry_type"]: round(e["after_tonnes"] - e["before_tonnes"], 6) for e in effects},
        found["what_if"]["notes"],
    )


def test_what_if__beside_other_uploads__has_the_effect_of_its_file_alone(office: Office) -> None:
    dearer = FACTORS.replace(",8,g/km", ",9,g/km")
    alone = _foreseen(office, "factors", dearer)
    assert alone == ({"train": 0.002}, [])
    assert office.upload("data", TRAIN.replace("500", "50500"), "--type", "train").code == 0
    effects, notes = _foreseen(office, "factors", dearer)
    assert effects == alone[0]
    assert "data_entries train|2025 is not up to date: 1 uploaded files wait to be taken in" in notes
    office.reconcile()  # the entries are in now, and their emissions are not
    effects, notes = _foreseen(office, "factors", dearer)
    assert effects == alone[0]  # the 50,000 km more are in both
    assert "the report of 2025 is not what these numbers begin with" in notes
    assert _foreseen(office, "data", MORE, "--type", "train")[0] == {"train": round(0.0056 - 1.5, 6)}
    assert office.run("heal").code == 0
    assert _foreseen(office, "factors", dearer) == alone
    assert office.run("lock", YEAR, "--reason", "published").code == 0
    said = office.upload("factors", dearer, "--what-if")
    assert said.code == 0
    assert "2025 is locked: published; the file would be refused" in said.err


def test_explain__of_a_changed_entry__shows_nothing_of_the_new_entry(office: Office) -> None:
    """The same line of another file has the same entry id, and is another entry."""
    assert office.upload("data", "unit_id,mass,kind\nART,100,virgin\n", "--type", "paper", "--wait").code == 0
    assert office.run("explain", YEAR, "--type", "paper", "--json").json["notes"] == []
    newer = "unit_id,mass,kind\nPHY,900,recycled\n"
    assert office.upload("data", newer, "--type", "paper", name="q3.csv").code == 0
    office.reconcile()  # the entries are in now, and their emissions are not
    found = office.run("explain", YEAR, "--json").json
    assert "old in this report: paper" in found["notes"]
    [paper] = [row for row in found["results"] if row["data_entry_type"] == "paper"]
    assert (paper["entry_id"], paper["unit_id"], paper["entry_changed"]) == ("line 2", "ART", True)
    now = ("quantity", "unit", "classification", "details", "data_file", "data_line", "data_by", "data_at")
    assert {paper[name] for name in now} == {None}
    assert all(row["data_file"] for row in found["results"] if row is not paper)
    said = office.run("explain", YEAR, "--type", "paper", "--entry", "line 2")
    assert (
        "    the entries of paper have changed since; recalculation is due\n    no factor fits it" in said.out
    )
    assert "q3.csv" not in said.out
    assert "old in this report: paper" in said.err
    page = office.folder / "page.html"
    assert office.run("report", YEAR, "--html", str(page)).code == 0
    missing = (
        page.read_text(encoding="utf-8")
        .partition("Entries that no factor matches")[2]
        .partition("</table>")[0]
    )
    assert "entries that have changed since" in missing
    assert "recycled" not in missing
    assert office.run("heal").code == 0
    [paper] = office.run("explain", YEAR, "--type", "paper", "--json").json["results"]
    assert (paper["data_file"], paper["quantity"], paper["entry_changed"]) == ("q3.csv", 900, False)


def test_explain__of_an_empty_home__is_refused(empty_office: Office) -> None:
    said = empty_office.run("explain", YEAR)
    assert (said.code, said.err.splitlines()[0]) == (2, "error: no result of 2025 matches")


def test_emissions__record_since_when_no_report_includes_them(office: Office) -> None:
    def since() -> str:
        [record] = office.carbon.provenance.records(
            ["carbon.data_entry_emissions"], [f"train|{YEAR}"]
        ).values()
        return str(record.detail["unsummed_since"])

    def edit(text: str) -> str:
        assert office.upload("data", text, "--type", "train").code == 0
        office.reconcile()
        office.reconcile()
        return since()

    summed = since()
    first = edit(MORE)
    assert first > summed
    assert edit(TRAIN + "ART,1,1,CH\n") == first  # calculated anew, and still no report of it
    assert office.run("heal").code == 0
    assert edit(MORE) > first


def withhold(office: Office, table: str, topic: str) -> Path:
    """Make the file of a type unavailable: too many levels of links."""
    folder = office.home / "lake" / "warehouse" / "carbon" / table
    [path] = [p for p in folder.rglob("*.parquet") if topic in str(p)]
    path.rename(path.with_suffix(".whole"))
    path.symlink_to(path)
    return path


def mend(path: Path) -> None:
    path.unlink()
    path.with_suffix(".whole").rename(path)


def test_unavailable_entries__delay_their_type_alone(office: Office, tmp_path: Path) -> None:
    before = office.milligrams()
    path = withhold(office, "data_entries", "paper")
    assert office.upload("data", MORE, "--type", "train", "--wait").code == 0
    assert office.milligrams() > before
    notes = office.run("report", YEAR, "--json").json["notes"]
    assert notes[0] == "old in this report: paper"
    assert any(path.name in note for note in notes)
    found = next(v for v in office.carbon.plan().verdicts if v.key == f"data_entries:paper|{YEAR}")
    assert (found.state, found.reason_code) == ("waits", "lake_unreadable")
    mend(path)
    assert set(readers(office, tmp_path / "report.html").values()) == {""}


def test_unavailable_emissions__are_not_overwritten_and_delay_no_other_type(office: Office) -> None:
    path = withhold(office, "data_entry_emissions", "paper")
    whole = office.content()["data_entry_emissions", f"train|{YEAR}"]
    for name, more in (("train", MORE), ("paper", PAPER + "SCI,5,recycled\n")):
        assert office.upload("data", more, "--type", name).code == 0
    office.run("heal")
    assert office.run("recalculate", YEAR).code == 0, "a person may ask for all of them at once"
    office.reconcile()
    assert office.content()["data_entry_emissions", f"train|{YEAR}"] != whole
    assert path.is_symlink()
    report = next(v for v in office.carbon.plan().verdicts if v.key == f"carbon_reports:{YEAR}")
    assert (report.state, report.reason_code) == ("waits", "input_missing")
    assert path.name in report.why
    mend(path)
    [put_off] = office.carbon.ledger.find(key_prefix=f"data_entry_emissions:paper|{YEAR}", status="deferred")
    assert put_off.reason_code == "lake_unreadable"
    office.carbon.ledger.retry(put_off.id)
    done = office.run("heal")
    assert done.code == 0, done.err
    assert office.due() == set()
    assert not office.run("report", YEAR).err

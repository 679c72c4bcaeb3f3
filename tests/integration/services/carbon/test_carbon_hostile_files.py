"""Every file that the unit tests know, through the real door: a refused one changes nothing, the rows of an
accepted one are kept as they should be."""

from __future__ import annotations

import csv
import importlib
import io
import os
import re
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import tests.unit.domain.carbon as collection
from domain.carbon.catalogue import catalogue
from domain.shared.tabular.problems import FileRefused
from services.carbon.upload import upload
from services.carbon.uploaded_file import File
from tests.integration.services.carbon.carbon_app import CarbonApp, furnished_once, running
from tests.integration.services.carbon.inboxes import CarbonInbox
from tests.unit.domain.carbon.files import UNITS, Case, Refused, Taken, check_refusal


def cases() -> Iterator[Case]:
    """Of every test that is given cases, all of them."""
    for path in sorted(Path(collection.__path__[0]).glob("test_file_*.py")):
        module = importlib.import_module(f"tests.unit.domain.carbon.{path.stem}")
        for test in vars(module).values():
            for mark in getattr(test, "pytestmark", []) if callable(test) else []:
                if mark.name == "parametrize" and mark.args[0] == "case":
                    yield from mark.args[1]


CASES = tuple(cases())
REFUSED = tuple(case for case in CASES if isinstance(case.expected, Refused))
TAKEN = tuple(case for case in CASES if isinstance(case.expected, Taken))


def given(case: Case) -> File:
    beside = case.read
    return File(
        kind=beside.kind,
        name="it.csv",
        content=case.content,
        by="somebody",
        year=beside.year,
        data_entry_type=beside.data_entry_type,
        mark=beside.mark,
    )


def acquainted(app: CarbonApp) -> None:
    """With the units that the files speak of, a factor and an entry, so that there is something to harm."""
    for year, names in UNITS.items():
        rows = "".join(f"{name},{name}\n" for name in sorted(names))
        path = app.file("units.csv", f"unit_id,name\n{rows}")
        assert app.run("upload", "units", str(path), "--year", str(year)).code == 0
    factors = 'data_entry_type,classification,value,unit\ntrain,"{""country"": ""CH""}",8,g/km\n'
    assert app.upload("factors", factors).code == 0
    entries = "unit_id,distance,country\nA,7,CH\n"
    app.upload_and_settle("data", entries, "--type", "train")


@pytest.fixture(scope="module")
def known(place: Path) -> Path:
    return furnished_once(place, "known", acquainted)


@pytest.fixture
def with_units(place: Path, known: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CarbonApp]:
    with running(place, known):
        yield CarbonApp(place, monkeypatch)


def state(app: CarbonApp) -> dict[str, Any]:
    """All that a refused file may not change; that it came is noted beside the uploads."""
    carbon = app.carbon
    return {
        "content": app.content(),
        "due": app.due(),
        "work": [(row.id, row.key, row.status, row.attempts) for row in carbon.ledger.find(limit=None)],
        "uploads": [one.id for one in carbon.store.uploads.find(accepted=True)],
        "kept": sorted(path for path in (app.home / "uploads").rglob("*")),
    }


@pytest.mark.slow
def test_a_refused_file_changes_nothing_and_says_why_at_its_place(with_units: CarbonApp) -> None:
    assert len(REFUSED) >= 60, "the files of the unit tests are not found"
    carbon, before = with_units.carbon, state(with_units)
    for case in REFUSED:
        assert isinstance(case.expected, Refused)
        with pytest.raises(FileRefused) as refused:
            upload(carbon, given(case))
        try:
            check_refusal(refused.value, case.expected)
            noted = carbon.store.uploads.find(limit=1)[0]
            assert not noted.accepted
            assert noted.problem_count == refused.value.total
            assert len(noted.problems) == len(refused.value.problems)
        except AssertionError as error:
            raise AssertionError(f"{case.name}: {error}") from error
    assert state(with_units) == before
    assert len(carbon.store.uploads.find(accepted=False)) == len(REFUSED)


@pytest.mark.slow
def test_the_rows_of_an_accepted_file_are_kept_as_they_are_read(with_units: CarbonApp) -> None:
    assert len(TAKEN) >= 60, "the files of the unit tests are not found"
    carbon = with_units.carbon
    # Units last: other files speak of those that are there.
    for case in sorted(TAKEN, key=lambda case: case.read.kind == "units"):
        assert isinstance(case.expected, Taken)
        receipt = upload(carbon, given(case), may_shrink=True)
        kept = carbon.staging.rows(receipt.upload.pipeline_id)
        for name, values in case.expected.columns.items():
            assert kept.column(name).to_pylist() == list(values), f"{case.name}: {name}"
        assert (receipt.upload.taken, receipt.upload.problem_count) == (kept.num_rows, 0), case.name
    assert with_units.settle() == []
    assert not with_units.due()
    assert {p.rsplit("|")[-1] for t, p in with_units.content() if t == "carbon_reports"} >= {"2024", "2025"}


def test_what_tells_no_size_is_read_no_further_than_a_file_may_be_large(
    with_units: CarbonApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe, a device: /dev/zero would fill the memory, and all that runs beside it would be killed."""
    monkeypatch.setattr("services.carbon.uploaded_file.LARGEST", 1 << 20)
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    thread = threading.Thread(target=pipe.write_bytes, args=(b"unit_id,name\n" + b"A,a\n" * (1 << 18),))
    thread.start()
    said = with_units.run("upload", "units", str(pipe), "--year", "2025")
    thread.join()
    assert (said.code, said.err.splitlines()[0]) == (2, f"error: {pipe} is larger than 1 MiB")


FORMULAS = ("=1+2", "+1+2", "-1+2", "@SUM(A1)", "\t=1+2", "\r=1+2", " =1+2", "\u00a0=1+2")


def test_nothing_that_leaves_the_platform_is_a_formula(with_units: CarbonApp, tmp_path: Path) -> None:
    """Whatever people wrote into the files: no cell of ours begins as a spreadsheet's formula does."""
    quoted = ['"' + text.replace('"', '""') + '"' for text in FORMULAS]
    # Some are refused at the door, and the rest must be harmless when they leave.
    rows = "".join(f"u{n},A,{text}\n" for n, text in enumerate(quoted))
    units = with_units.upload("units", f"unit_id,parent_id,name\nA,,Top\n{rows}", "--accept-valid", "--json")
    [reported] = units.json["files"]
    left = reported["taken"] - 1
    assert left >= 3
    keys = [f'"{{""country"": ""C{n}""}}"' for n in range(len(quoted))]
    factors = "".join(f"train,{key},8,g/km,{text}\n" for key, text in zip(keys, quoted, strict=True))
    header = "data_entry_type,classification,value,unit,source\n"
    with_units.upload("factors", header + factors, "--accept-valid")
    entries = "unit_id,distance,country\n" + "".join(f"u{n},7,C{n}\n" for n in range(len(quoted)))
    assert with_units.upload("data", entries, "--type", "train", "--accept-valid").code == 0
    assert with_units.settle() == []
    page = tmp_path / "report.html"
    exported = [with_units.run("report", "2025", "--csv", "--html", str(page)).out]
    exported += [with_units.run("template", what).out for what in ("units", "factors", *catalogue().types)]
    states = [state for text in exported for row in csv.reader(io.StringIO(text)) for state in row]
    named = {state for state in states if "1+2" in state or "SUM(A1)" in state}
    assert named, "they are in the export"
    html = re.sub(r"<style>.*?</style>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    texts = [unescape(text) for text in re.findall(r">([^<>]+)<", html)]
    assert any("1+2" in text for text in texts), "they are on the page"
    for state in (*states, *texts):
        bare = state.lstrip(" \u00a0")
        assert bare[:1] not in ("=", "+", "-", "@", "\t", "\r") or number(bare), repr(state)


def number(text: str) -> bool:
    return re.fullmatch(r"[-+]?[\d\u202f.,]+\s?%?", text.strip()) is not None


def test_inbox_report__hostile_values__run_in_no_spreadsheet(with_units: CarbonApp) -> None:
    rows = "".join(f'"{text}",1,CH\n' for text in FORMULAS)
    inbox = CarbonInbox(with_units.carbon, with_units.home / "inbox")
    inbox.put("data/train/2025/bad.csv", f"unit_id,distance,country\n{rows}")
    assert inbox.find_and_run() == {"bad.csv": "file_refused"}
    lines = inbox.report("refused/data/train/2025/bad.csv").splitlines()
    assert len(lines) >= len(FORMULAS)
    assert [line for line in lines if line.lstrip()[:1] in ("=", "+", "-", "@", "\t", "\r", "")] == []

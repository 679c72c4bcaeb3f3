"""A file that takes the place of another says so; one that would lose most rows is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from services.carbon.findings import find_problems
from services.partitions import PartitionReport
from tests.integration.services.carbon.carbon_app import PAPER, UNITS, YEAR, CarbonApp
from tests.integration.services.carbon.inboxes import CarbonInbox

LONG = PAPER + "".join(f"SCI,{n},recycled\n" for n in range(1, 10))
SHORT = PAPER + "PHY,1,recycled\n"
KEY = f"data_entries:paper|{YEAR}"


def replaced(app: CarbonApp) -> list[Any]:
    return [f for f in find_problems(app.carbon) if f.reason_code == "file_replaced"]


@pytest.fixture
def long(app: CarbonApp) -> CarbonApp:
    app.upload_and_settle("data", LONG, "--type", "paper", name="long.csv")
    return app


def test_what_if__of_a_file_that_replaces_another__names_it(long: CarbonApp) -> None:
    said = long.upload("data", LONG + "PHY,1,recycled\n", "--type", "paper", "--what-if")
    assert "instead of upload 6, long.csv: 10 → 11 rows of 2025" in said.out
    assert "--replace" not in said.err
    said = long.upload("data", SHORT, "--type", "paper", "--what-if")
    assert said.code == 0
    assert "refused without `--replace`" in said.err
    assert "--replace" not in long.upload("data", SHORT, "--type", "paper", "--what-if", "--replace").err
    [found] = long.upload("data", SHORT, "--type", "paper", "--what-if", "--json").json["files"]
    assert found["what_if"]["replaced"] == [
        {"upload": 6, "file": "long.csv", "year": 2025, "rows_before": 10, "rows_after": 2}
    ]
    assert long.upload("factors", "x", "--what-if").code == 1


def test_status__a_file_that_replaced_another__is_explained_for_a_day(long: CarbonApp) -> None:
    [found] = replaced(long)
    assert (found.subject, found.health) == (KEY, "explained")
    assert "long.csv (upload 6" in found.reason
    assert found.reason.endswith("1 → 10 rows")
    [(year, old, new)] = long.carbon.store.uploads.replaced_since(found.since)
    assert (year, old.id, new.id) == (2025, 5, 6)
    assert long.carbon.store.uploads.replaced_since(found.since + timedelta(seconds=1)) == []


def test_event__of_entries_that_replaced_others__names_both_files(long: CarbonApp) -> None:
    from services.carbon.intake import ingest_entries
    from services.partitions import Attempt

    reports: list[PartitionReport] = []
    assert long.upload("data", SHORT, "--type", "paper", "--replace", name="short.csv").code == 0
    ingest_entries(long.carbon, [f"paper|{YEAR}"], Attempt("run"), reports.extend)
    [event] = reports
    assert event.metadata["replaced"] == [
        {"file": "short.csv", "rows": 2, "instead_of": "long.csv", "rows_before": 10}
    ]


def test_upload__with_less_than_half_of_the_rows__is_refused_without_replace(long: CarbonApp) -> None:
    before = long.milligrams()
    refused = long.upload("data", SHORT, "--type", "paper", name="short.csv")
    assert refused.code == 2
    assert "short.csv has 2 rows of 2025" in refused.err
    assert "the 10 rows of upload 6 (long.csv)" in refused.err
    assert "--replace" in refused.err
    assert (long.due(), long.milligrams()) == (set(), before)
    half = PAPER + "".join(f"SCI,{n},recycled\n" for n in range(1, 5))
    assert long.upload("data", half, "--type", "paper", "--what-if").err == ""
    assert long.upload("data", SHORT, "--type", "paper", "--replace").code == 0
    assert long.settle() == []
    assert long.milligrams() < before


def test_upload__of_units_or_of_one_of_several_years__is_held_to_the_rows_of_its_scope(
    long: CarbonApp,
) -> None:
    refused = long.upload("units", "unit_id,name\nUNI,University\n")
    assert (refused.code, "1 rows of 2025" in refused.err) == (2, True)
    assert long.run("upload", "units", str(long.file("u.csv", UNITS)), "--year", "2024").code == 0
    header, *rows = LONG.splitlines()
    both = "\n".join([f"year,{header}", f"2024,{rows[0]}", *(f"2025,{row}" for row in rows), ""])
    two_years = long.run("upload", "data", str(long.file("both.csv", both)), "--type", "paper")
    assert two_years.code == 0, "2025 keeps its rows"
    one = long.run(
        "upload", "data", str(long.file("one.csv", f"year,{header}\n2024,{rows[1]}\n")), "--type", "paper"
    )
    assert one.code == 0, "of 2024 there was one row"
    few = long.run(
        "upload", "data", str(long.file("few.csv", f"year,{header}\n2025,{rows[1]}\n")), "--type", "paper"
    )
    assert "the 10 rows of upload" in few.err


def test_withdraw__of_all_rows__is_no_mistake(long: CarbonApp) -> None:
    assert long.run("withdraw", "paper", YEAR).code == 0
    [found] = replaced(long)
    assert found.reason.endswith("10 → 0 rows")


def test_inbox__file_with_less_than_half_of_the_rows__is_refused_with_the_remedy(long: CarbonApp) -> None:
    inbox = CarbonInbox(long.carbon, long.home / "inbox")
    place = f"data/paper/{YEAR}"
    inbox.put(f"{place}/short.csv", SHORT)
    assert inbox.find_and_run() == {"short.csv": "would_shrink"}
    report = inbox.report(f"refused/{place}/short.csv")
    assert "the 10 rows of upload 6 (long.csv)" in report
    assert "--replace" in report
    inbox.put(f"{place}/longer.csv", LONG + "ART,1,recycled\n")
    assert inbox.find_and_run() == {"longer.csv": "imported"}
    assert "instead of upload 6, long.csv: 10 → 11 rows" in inbox.report(f"taken/{place}/longer.csv")

"""The upload index after the loss or restore of the ledger, and staged rows that were lost."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from domain.carbon.tables import DATA_ENTRIES, FACTORS
from services.carbon.intake import ingest_entries, ingest_factors
from services.carbon.reindex import not_indexed, uploads_without_rows, write_missing_notes
from services.carbon.service import NotIndexed
from services.carbon.upload_store import Upload
from services.partitions import Pass
from tests.command import Said, said
from tests.integration.services.carbon.carbon_app import FACTORS as CHEAP
from tests.integration.services.carbon.carbon_app import PAPER, TRAIN, UNITS, YEAR, CarbonApp
from tests.integration.services.carbon.test_report_readers import withhold

ENTRIES, YEARS_FACTORS = ("data_entries", f"train|{YEAR}"), ("factors", YEAR)
DEAR = CHEAP.replace(",8,", ",10,")
MORE = TRAIN.replace("500", "900")
BOTH_YEARS = "unit_id,mass,kind,year\nART,1000,recycled,2024\nART,100,recycled,2025\n"
NEWER = PAPER.replace("100", "200")


def findings(app: CarbonApp) -> dict[str, dict[str, Any]]:
    found = said("status", "--json").json["findings"]
    return {f["subject"]: f for f in found if f["domain"] == "carbon"}


def uploads(app: CarbonApp, kind: str) -> list[Upload]:
    """Oldest first."""
    return app.carbon.store.uploads.find(kind=kind, accepted=True)[::-1]


# The ledger was lost, or restored from a backup


def lose_ledger(app: CarbonApp) -> None:
    for path in app.home.glob("ledger.db*"):
        path.unlink()
    assert said("migrate").code == 0


def copy_database(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


def restore_older_ledger(app: CarbonApp) -> int:
    """Restore a backup that lacks newer factors and entries; return the total with them."""
    ledger, backup = app.home / "ledger.db", app.folder / "ledger-of-yesterday.db"
    copy_database(ledger, backup)
    assert app.upload("factors", DEAR, name="dear.csv").code == 0
    app.upload_and_settle("data", MORE, "--type", "train", name="more.csv")
    total = app.milligrams()
    for path in app.home.glob("ledger.db*"):
        path.unlink()
    copy_database(backup, ledger)
    return total


def test_status__older_ledger__one_finding_and_nothing_is_made(app: CarbonApp) -> None:
    total = restore_older_ledger(app)
    before = app.content()
    finding = findings(app)["uploads"]
    assert (finding["health"], finding["reason_code"]) == ("broken", "not_indexed")
    assert finding["reason"].startswith("2 staged uploads are not indexed")
    assert finding["action"] == "`perennial carbon reindex`"
    app.settle()
    imported = {key for key in before if key[0] in ("units", "factors", "factor_versions", "data_entries")}
    assert {key: app.content()[key] for key in imported} == {key: before[key] for key in imported}
    assert app.milligrams() == total
    codes = [finding["reason_code"] for finding in findings(app).values()]
    assert codes.count("not_indexed") == 1


def test_materialize__older_ledger__is_deferred(app: CarbonApp) -> None:
    restore_older_ledger(app)
    before = app.content()
    for ingest, partition in ((ingest_entries, ENTRIES[1]), (ingest_factors, YEAR)):
        with pytest.raises(Exception, match="2 staged uploads are not indexed"):
            ingest(app.carbon, [partition], Pass("a click"), lambda _: None)
    assert app.content() == before


def test_upload__older_ledger__is_refused_until_reindexed(app: CarbonApp) -> None:
    restore_older_ledger(app)
    refused = app.upload("data", PAPER + "SCI,1,recycled\n", "--type", "paper")
    assert refused.code != 0
    assert "perennial carbon reindex" in refused.err
    assert app.run("reindex").code == 0
    assert app.upload("data", PAPER + "SCI,1,recycled\n", "--type", "paper").code == 0


def test_reindex__older_ledger__newer_uploads_count_again(app: CarbonApp) -> None:
    total = restore_older_ledger(app)
    done = app.run("reindex", "--json")
    assert app.settle() == []
    assert (done.code, len(done.json["uploads"])) == (0, 2), done.err
    assert (app.milligrams(), findings(app)) == (total, {})
    assert app.run("reindex", "--json").json["uploads"] == []


def test_reindex__lost_ledger__every_upload_in_its_order(app: CarbonApp) -> None:
    app.upload_and_settle("factors", DEAR)
    before, total = app.carbon.store.uploads.find(), app.milligrams()
    lose_ledger(app)
    assert findings(app)["uploads"]["reason_code"] == "not_indexed"
    assert app.run("reindex").code == 0
    assert app.settle() == []
    assert app.carbon.store.uploads.find() == before
    assert (app.milligrams(), findings(app)) == (total, {})


def test_not_indexed__rows_without_a_note__are_no_upload(app: CarbonApp) -> None:
    carbon = app.carbon
    [first, *_] = carbon.store.uploads.find(kind="units")
    carbon.staging.keep("01DIED", b"", carbon.staging.rows(first.pipeline_id))
    assert not_indexed(carbon.staging, carbon.store) == set()
    carbon.refuse_not_indexed()
    carbon.staging.note("01LATER", b"{}")
    with pytest.raises(NotIndexed):
        carbon.refuse_not_indexed()


def test_write_missing_notes__no_notes__writes_one_per_upload(app: CarbonApp) -> None:
    carbon = app.carbon
    noted = carbon.staging.noted()
    shutil.rmtree(app.home / "uploads" / "notes")
    assert write_missing_notes(carbon.staging, carbon.store) == len(noted)
    assert carbon.staging.noted() == noted


def test_plan__lost_ledger_and_unavailable_rows__waits(app: CarbonApp) -> None:
    lose_ledger(app)
    withhold(app, "data_entries", "train")
    [verdict] = [v for v in app.carbon.plan().verdicts if (v.table, v.partition) == ENTRIES]
    assert verdict.reason_code == "lake_unreadable"


# Staged rows were lost


def lose_rows(app: CarbonApp, *lost: Upload) -> None:
    for one in lost:
        (app.home / "uploads" / one.pipeline_id / "rows.parquet").unlink()


def lose(app: CarbonApp, table: str, partition: str) -> None:
    lake = app.carbon.lake
    empty = lake.tables[table].schema.empty_table()
    lake.replace(table, partition, empty, allow_empty=True)


def paper(app: CarbonApp, text: str, *options: str) -> Said:
    path = app.file("paper.csv", text)
    return app.run("upload", "data", str(path), "--type", "paper", *options)


def two_years(app: CarbonApp) -> Upload:
    """Return a file of two years, superseded in one of them."""
    for kind, text in (("units", UNITS), ("factors", CHEAP)):
        path = app.file(f"{kind}-2024.csv", text)
        assert app.run("upload", kind, str(path), "--year", "2024").code == 0
    assert paper(app, BOTH_YEARS, "--wait").code == 0
    older = uploads(app, "data")[-1]
    assert paper(app, NEWER, "--year", YEAR, "--wait").code == 0
    return older


def test_upload__rows_of_the_same_file_lost__restores_them_and_supersedes_nothing(
    app: CarbonApp,
) -> None:
    older = two_years(app)
    before, known = app.content(), uploads(app, "data")
    lose_rows(app, older)
    lose(app, DATA_ENTRIES.name, "paper|2024")
    app.settle()
    again = paper(app, BOTH_YEARS, "--wait", "--json")
    [receipt] = again.json["files"]
    assert (again.code, receipt["upload"]) == (0, older.id), again.err
    assert (receipt["restored"], receipt["superseded"]) == (True, True)
    assert (app.content(), uploads(app, "data")) == (before, known)


def test_upload__rows_of_the_newest_file_lost__restores_them(app: CarbonApp) -> None:
    before, known = app.content(), uploads(app, "units")
    lose_rows(app, *known)
    lose(app, "carbon.units", YEAR)
    app.settle()
    again = app.upload("units", UNITS, "--wait", "--json")
    [receipt] = again.json["files"]
    assert (again.code, receipt["restored"], receipt["superseded"]) == (0, True, False), again.err
    assert (app.content(), uploads(app, "units")) == (before, known)


def test_upload__rows_of_older_factors_lost__restores_them_below_newer_ones(app: CarbonApp) -> None:
    app.upload_and_settle("factors", DEAR)
    before, known = app.milligrams(), uploads(app, "factors")
    lose_rows(app, known[0])
    lose(app, FACTORS.name, YEAR)
    app.settle()
    app.upload_and_settle("factors", CHEAP)
    assert (app.milligrams(), uploads(app, "factors")) == (before, known)
    assert app.upload("factors", CHEAP, "--wait").code == 0, "now it is the newest"
    assert app.milligrams() == before - 2_000 * 1_000 * 2


def test_upload__rows_lost_and_year_locked__restores_them(app: CarbonApp) -> None:
    older = two_years(app)
    before = app.content()
    lose_rows(app, older)
    lose(app, DATA_ENTRIES.name, "paper|2024")
    app.settle()
    assert app.run("lock", YEAR, "--reason", "published").code == 0
    again = paper(app, BOTH_YEARS, "--wait")
    assert again.code == 0, again.err
    assert app.content() == before
    assert paper(app, BOTH_YEARS + "ART,1,recycled,2025\n").code == 2


def test_upload__file_of_two_years__receipt_names_all_it_supersedes(app: CarbonApp) -> None:
    two_years(app)
    older, newer = uploads(app, "data")[-2:]
    again = paper(app, BOTH_YEARS + "ART,1,recycled,2025\n", "--json")
    [receipt] = again.json["files"]
    assert [one["upload"] for one in receipt["replaced"]] == [older.id, newer.id]


def test_doctor__staged_rows_gone__names_the_uploads(app: CarbonApp) -> None:
    def part() -> tuple[bool, str]:
        [found] = [one for one in said("doctor", "--json").json if one["part"] == "uploads"]
        return found["ok"], found["result"]

    assert part() == (True, "the rows of 5 uploads are there")
    [lost] = uploads(app, "units")
    lose_rows(app, lost)
    ok, text = part()
    assert (ok, "the staged rows of 1 of 5 uploads are gone: units.csv (units 2025" in text) == (False, True)
    assert uploads_without_rows(app.carbon.staging, app.carbon.store) == [lost]

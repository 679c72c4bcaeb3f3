"""The upload index after the loss or restore of the ledger, and staged rows that were lost."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from services.carbon.intake import ingest_entries, ingest_factors
from services.carbon.reindex import not_indexed, uploads_without_rows, write_missing_notes
from services.carbon.service import NotIndexed
from services.carbon.upload_store import Upload
from services.partitions import Attempt
from tests.command import said
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
    return {f["subject"]: f for f in found if f["domain"] == "carbon" and f["reason_code"] != "file_replaced"}


def uploads(app: CarbonApp, kind: str) -> list[Upload]:
    """Oldest first."""
    return [u for u in app.carbon.store.uploads.find(accepted=True)[::-1] if u.kind == kind]


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
            ingest(app.carbon, [partition], Attempt("a click"), lambda _: None)
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
    first = next(u for u in carbon.store.uploads.find() if u.kind == "units")
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
    assert verdict.reason_code == "lake_unavailable"


# Staged rows were lost


def test_upload__rows_of_the_same_file_lost__is_a_new_upload(app: CarbonApp) -> None:
    before, [lost] = app.content(), uploads(app, "units")
    (app.home / "uploads" / lost.pipeline_id / "rows.parquet").unlink()
    empty = app.carbon.lake.tables["carbon.units"].schema.empty_table()
    app.carbon.lake.replace("carbon.units", YEAR, empty, allow_empty=True)
    assert app.settle()
    assert findings(app)[f"units:{YEAR}"]["reason_code"] == "staging_corrupt"
    [found] = [one for one in said("doctor", "--json").json if one["part"] == "uploads"]
    assert not found["ok"]
    assert "the staged rows of 1 of 5 uploads are gone: units.csv (units 2025" in found["result"]
    assert uploads_without_rows(app.carbon.staging, app.carbon.store) == [lost]
    app.upload_and_settle("units", UNITS)
    assert uploads(app, "units")[-1].id > lost.id
    assert (findings(app), app.content().keys()) == ({}, before.keys())

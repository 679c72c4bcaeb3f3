"""From an uploaded file to the report: exactly what changed is done again, and the numbers are right."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from getpass import getuser

import pytest

from services.carbon.reconcile import CarbonReconciler
from services.reconcile import reconcile
from tests.command import said
from tests.integration.services.carbon.carbon_app import (
    ELECTRICITY,
    FACTORS,
    PAPER,
    TRAIN,
    UNITS,
    YEAR,
    CarbonApp,
    start_run,
)

TRAIN_MG = 1000 * 2 * 8_000 + 500 * 30_000
ELECTRICITY_MG = (5_000 + 2_000) * (120_000 + 20_000)
PAPER_MG = 100 * 700_000
DEARER = FACTORS.replace(",8,g/km", ",9,g/km")


def changed(before: dict[tuple[str, str], str], after: dict[tuple[str, str], str]) -> set[tuple[str, str]]:
    return {place for place in before.keys() | after.keys() if before.get(place) != after.get(place)}


def test_within_two_passes_after_its_factors_are_in_the_report_is_new_and_the_rest_untouched(
    app: CarbonApp,
) -> None:
    before, files = app.content(), app.data_files("data_entry_emissions")
    assert app.upload("factors", DEARER).code == 0
    app.reconcile()  # takes the file in
    app.reconcile()
    app.reconcile()
    assert not app.due()
    assert app.milligrams() == TRAIN_MG + 1000 * 2 * 1_000 + ELECTRICITY_MG + PAPER_MG
    assert changed(before, app.content()) == {
        ("factors", YEAR),
        ("factor_versions", YEAR),
        ("data_entry_emissions", f"train|{YEAR}"),
        ("carbon_report_modules", f"travel|{YEAR}"),
        ("carbon_reports", YEAR),
    }
    kept = {f for f in files if "train" not in f}
    assert kept
    assert kept <= app.data_files("data_entry_emissions"), "not a file of another type was written anew"


def test_the_same_file_again_recalculates_nothing(app: CarbonApp) -> None:
    before = app.content()
    [done] = app.upload("factors", FACTORS, "--json").json["files"]
    assert done["known_already"]
    [job] = app.carbon.ledger.find("carbon.factor_ingest", limit=None)
    assert done["jobs"] == [job.id], "the receipt names the work that imported it"
    assert app.settle() == []
    assert app.content() == before


@pytest.mark.parametrize(
    "text",
    [
        FACTORS.replace(",8,g/km", ",8.0,g/km"),
        FACTORS.replace(",8,g/km", ",8,G CO2e per km"),
        FACTORS.replace('"{""country"": ""CH""}"', '"{ ""Country"" :  "" CH "" }"'),
        "\n".join([FACTORS.splitlines()[0], *sorted(FACTORS.splitlines()[1:])]) + "\n",
        FACTORS.replace(",sample", ",another source"),
    ],
    ids=["1.0", "unit spelt otherwise", "spaces and case", "other order", "other source"],
)
def test_what_says_the_same_recalculates_nothing(app: CarbonApp, text: str) -> None:
    before = app.content()
    done = app.upload("factors", text, "--json").json
    assert not done["files"][0]["known_already"]
    assert app.settle() == []
    assert changed(before, app.content()) <= {("factors", YEAR)}, "only who saw it last may be new"
    kinds = [row.kind for row in app.carbon.ledger.find(limit=None)]
    assert kinds.count("carbon.emission_recalc") == 3


def test_a_factor_that_is_gone_is_stale_kept_and_used_and_seen_again_it_is_not(
    app: CarbonApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    ids = {r["factor_id"] for r in app.sql("SELECT factor_id FROM carbon.factors")}
    without = FACTORS.replace('train,,"{""country"": ""CH""}",8,g/km,sample\n', "")
    before = app.milligrams()
    app.upload_and_settle("factors", without)
    assert app.milligrams() == before
    [stale] = app.run("stale", "--json").json["factors"]
    assert json.loads(stale["classification"]) == {"country": "CH"}
    assert stale["entries"] == 1
    assert (stale["file"], stale["line"], stale["uploaded_by"]) == ("factors.csv", 2, getuser())
    reported = app.run("stale").out
    assert "country CH" in reported
    assert "factors.csv line 2, uploaded" in reported
    app.upload_and_settle("factors", FACTORS + "\n")
    assert not app.run("stale", "--json").json["factors"]
    assert {r["factor_id"] for r in app.sql("SELECT factor_id FROM carbon.factors")} == ids


def test_the_receipt_names_what_the_file_took_the_place_of(app: CarbonApp) -> None:
    done = app.upload("data", TRAIN.replace("500", "600"), "--type", "train", name="trains-again.csv")
    assert "instead of upload 3, data.csv: 2 → 2 rows of 2025" in done.out
    done = app.upload("data", TRAIN, "--type", "train", "--json")
    [replaced] = done.json["files"][0]["replaced"]
    assert replaced == {
        "upload": 6,
        "file": "trains-again.csv",
        "year": 2025,
        "rows_before": 2,
        "rows_after": 2,
    }
    assert not app.upload("factors", DEARER, "--json").json["files"][0]["replaced"], "they add up"


def test_upload__two_files_of_one_scope__second_is_refused(app: CarbonApp) -> None:
    first, second = (app.file(f"{n}.csv", TRAIN.replace("500", n)) for n in ("601", "602"))
    both = app.run("upload", "data", str(first), str(second), "--type", "train", "--year", YEAR)
    assert both.code == 1
    assert "refused: 602.csv has the type, year and institution of 601.csv" in both.err
    assert "put all rows of them into one file" in both.err
    assert app.settle() == []
    assert app.milligrams() == TRAIN_MG + 101 * 30_000 + ELECTRICITY_MG + PAPER_MG


def test_what_if_says_whose_sums_another_tree_changes(app: CarbonApp) -> None:
    moved = UNITS.replace("PHY,Physics,SCI", "PHY,Physics,ART")
    sums = {unit: app.milligrams(unit) for unit in ("SCI", "ART", "PHY", "UNI")}
    [reported] = app.upload("units", moved, "--what-if", "--json").json["files"]
    foreseen = {u["unit_id"]: round(u["after_tonnes"] * 1e9) for u in reported["what_if"]["units"]}
    assert "it lowers SCI 2025 by " in app.upload("units", moved, "--what-if").out
    assert "changes no result, and no unit" in app.upload("units", UNITS, "--what-if").out
    assert {unit: app.milligrams(unit) for unit in sums} == sums, "so far nothing has changed"
    app.upload_and_settle("units", moved)
    now = {unit: app.milligrams(unit) for unit in sums}
    assert foreseen == {unit: mg for unit, mg in now.items() if mg != sums[unit]}
    assert set(foreseen) == {"SCI", "ART"}


def test_data_of_a_type_is_replaced_by_its_next_file_and_only_that(app: CarbonApp) -> None:
    before = app.content()
    app.upload_and_settle("data", TRAIN.replace("500", "600"), "--type", "train")
    assert app.milligrams() == TRAIN_MG + 100 * 30_000 + ELECTRICITY_MG + PAPER_MG
    assert {place for place, _ in changed(before, app.content())} == {
        "data_entries",
        "data_entry_emissions",
        "carbon_report_modules",
        "carbon_reports",
    }


def test_an_absurd_mass_is_refused_by_name_and_the_report_says_that_the_type_is_old(
    app: CarbonApp,
) -> None:
    before = app.milligrams()
    done = app.upload("data", "unit_id,mass,kind\nART,1e12,recycled\n", "--type", "paper", "--wait")
    assert done.code == 1
    assert "the entry 'line 2' of ART of paper would cause" in done.err
    assert app.milligrams() == before
    assert "old in this report: paper" in app.run("report", YEAR).err
    status = {f["subject"]: f for f in said("status", "--json").json["findings"]}
    reported = status[f"data_entry_emissions:paper|{YEAR}"]
    assert (reported["health"], reported["reason_code"]) == ("broken", "implausible_mass")
    app.upload_and_settle("data", PAPER, "--type", "paper")
    assert app.milligrams() == before


def test_an_entry_without_a_factor_is_reported_and_is_no_zero(app: CarbonApp) -> None:
    virgin = PAPER + "ART,50,virgin\n"
    app.upload_and_settle("data", virgin, "--type", "paper")
    [row] = app.sql("SELECT * FROM carbon.data_entry_emissions WHERE status = 'unmatched'")
    assert (row["mg_co2e"], row["factor_id"]) == (None, None)
    assert [r["unmatched"] for r in app.run("report", YEAR, "--json").json["rows"]] == [0, 0, 1, 0]
    [reported] = app.run("explain", YEAR, "--entry", "line 3", "--type", "paper", "--json").json["results"]
    assert reported["status"] == "unmatched"
    assert "no factor fits kind virgin" in app.run("explain", YEAR, "--entry", "line 3").out
    page = app.folder / "page.html"
    assert app.run("report", YEAR, "--html", str(page)).code == 0
    assert "kind virgin" in page.read_text()


def test_a_reorganisation_moves_the_sums_and_no_number(app: CarbonApp) -> None:
    before = app.content()
    moved = UNITS.replace("PHY,Physics,SCI", "PHY,Physics,ART")
    app.upload_and_settle("units", moved)
    assert app.milligrams() == TRAIN_MG + ELECTRICITY_MG + PAPER_MG
    assert app.milligrams("SCI") == 5_000 * 140_000
    assert changed(before, app.content()) == {("units", YEAR), ("carbon_reports", YEAR)}


def test_a_lost_partition_of_any_table_comes_back_as_it_was(app: CarbonApp) -> None:
    before = app.content()
    lake = app.carbon.lake
    for table, partition in before:
        nothing = lake.tables[f"carbon.{table}"].schema.empty_table()
        lake.replace(f"carbon.{table}", partition, nothing, allow_empty=True)
    assert app.settle() == []
    assert app.content() == before


def test_every_number_leads_back_to_its_line_its_factor_and_who_brought_them(
    app: CarbonApp,
) -> None:
    [row] = app.run("explain", YEAR, "--unit", "PHY", "--json").json["results"]
    assert (row["kg_co2e"], row["data_line"], row["factor_line"], row["factor_version"]) == (16.0, 2, 2, 1)
    assert row["data_file"] == "data.csv"
    assert row["factor_file"] == "factors.csv"
    assert row["data_by"] == row["factor_by"]


def test_the_whole_report_as_csv_is_in_milligrams_and_exactly_in_tonnes(app: CarbonApp) -> None:
    rows = list(csv.DictReader(io.StringIO(app.run("report", YEAR, "--csv").out)))
    assert sum(int(row["own_mg"]) for row in rows) == TRAIN_MG + ELECTRICITY_MG + PAPER_MG
    assert all(Decimal(row["own_tonnes"]) * 10**9 == int(row["own_mg"]) for row in rows)
    assert all(Decimal(row["total_tonnes"]) * 10**9 == int(row["total_mg"]) for row in rows)
    assert "E" not in "".join(row["own_tonnes"] for row in rows)


def test_an_explanation_shows_the_whole_calculation(app: CarbonApp) -> None:
    """The constant that was added, and the class that the amount chose: neither stands in the file."""
    factors = FACTORS + (
        'plane,flight_co2,"{""cabin"": ""economy"", ""haul"": ""medium""}",0.2,kg/km,sample\n'
        'plane,flight_non_co2,"{""cabin"": ""economy"", ""haul"": ""medium""}",0.1,kg/km,sample\n'
    )
    assert app.upload("factors", factors).code == 0
    flights = "unit_id,distance,passengers,round_trip\nPHY,1905.5,3,yes\n"
    app.upload_and_settle("data", flights, "--type", "plane")
    reported = app.run("explain", YEAR, "--type", "plane", "--limit", "1")
    assert (
        "    12,003 km = (distance [km] + 95 km) × passengers × (2 if round_trip): "
        "distance 1,905.5, passengers 3, round_trip yes, cabin economy\n"
    ) in reported.out
    assert "× 0.2 kg/km for cabin economy, haul medium (factor " in reported.out
    assert "1 of 2 results, the heaviest first" in reported.err
    assert "of" not in app.run("explain", YEAR, "--type", "plane").err


def test_what_if_says_what_an_upload_would_do_and_does_nothing(app: CarbonApp) -> None:
    before = app.content(), app.due()
    said = app.upload("factors", DEARER, "--what-if")
    assert "raises train 2025 by 6.5 %, 0.002 t" in said.out
    assert (app.content(), app.due()) == before
    app.upload_and_settle("factors", DEARER)
    assert app.milligrams() == TRAIN_MG + 2_000_000 + ELECTRICITY_MG + PAPER_MG


def test_a_refused_file_changes_nothing_and_lists_its_problems(app: CarbonApp) -> None:
    before = app.content(), app.due()
    wrong = ELECTRICITY + "XXX,-5,kWh,2\n"
    done = app.upload("data", wrong, "--type", "electricity", "--json")
    assert done.code == 1
    [reported] = done.json["files"]
    assert [(p["line"], p["column"], p["code"]) for p in reported["problems"]] == [
        (4, "consumption", "negative"),
        (4, "unit_id", "unknown_unit_id"),
        (4, "use_share", "share"),
    ]
    assert (app.content(), app.due()) == before
    app.upload_and_settle("data", wrong, "--type", "electricity", "--accept-valid")
    assert app.milligrams() == TRAIN_MG + ELECTRICITY_MG + PAPER_MG


def test_a_locked_year_stays_as_it_is_and_says_so(app: CarbonApp) -> None:
    before = app.content()
    assert app.run("lock", YEAR, "--reason", "published").code == 0
    refused = app.upload("factors", DEARER)
    assert refused.code == 2
    assert "2025 is locked by" in refused.err
    lake = app.carbon.lake
    nothing = lake.tables["carbon.carbon_reports"].schema.empty_table()
    lake.replace("carbon.carbon_reports", YEAR, nothing, allow_empty=True)
    assert app.settle() == []
    assert ("carbon_reports", YEAR) not in app.content()
    assert app.run("unlock", YEAR, "--reason", "a mistake").code == 0
    assert app.settle() == []
    assert app.content() == before


def test_work_that_meets_a_lock_is_wished_for_again_when_the_year_is_unlocked(
    app: CarbonApp,
) -> None:
    assert app.upload("factors", DEARER).code == 0
    app.reconcile()
    carbon = app.carbon
    [start] = reconcile(CarbonReconciler(carbon)).starts
    app.run("lock", YEAR, "--reason", "published")
    assert start_run(carbon, start)
    assert not [row for row in carbon.ledger.find(limit=None) if row.status == "failed"]
    assert app.run("unlock", YEAR, "--reason", "a mistake").code == 0
    assert app.settle() == []
    assert app.milligrams() == TRAIN_MG + 2_000_000 + ELECTRICITY_MG + PAPER_MG


def test_a_report_of_the_past_is_what_it_was(app: CarbonApp) -> None:
    now = datetime.now(UTC).isoformat()
    before = app.milligrams()
    app.upload_and_settle("factors", DEARER)
    assert app.milligrams() != before
    assert app.run("report", YEAR, "--as-of", now, "--json").json["total_mg"] == before
    rows = {r["module"]: r["change_mg"] for r in app.run("diff", YEAR, "--from", now, "--json").json["rows"]}
    assert rows == {"buildings": 0, "purchases": 0, "travel": 2_000_000, "all": 2_000_000}

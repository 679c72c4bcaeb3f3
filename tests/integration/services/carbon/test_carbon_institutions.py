"""Several institutions in one home: whose units, data and factors are whose."""

from __future__ import annotations

from tests.integration.services.carbon.carbon_app import (
    FACTORS,
    PAPER,
    TRAIN,
    UNITS,
    YEAR,
    CarbonApp,
)
from tests.integration.services.carbon.test_carbon_chain import ELECTRICITY_MG, TRAIN_MG

THEIRS = "unit_id,name,parent_id\nEPF,Polytechnic,\nCHE,Chemistry,EPF\n"
JOURNEYS = TRAIN.replace("PHY", "CHE").replace("ART", "EPF")


def test_factors_of_another_institution_are_the_years_and_mine_again_are_news(
    app: CarbonApp,
) -> None:
    dearer = FACTORS.replace(",8,g/km", ",9,g/km")
    assert app.upload("factors", dearer, "--institution", "other").code == 0
    reported = app.upload("factors", FACTORS, "--json").json["files"][0]
    assert not reported["known_already"], "the year's factors are others by now"


def test_data_of_another_bodys_units_are_taken_with_a_warning(app: CarbonApp) -> None:
    """A clinic may count for a university's units; a misspelt `--institution` must not go unseen."""
    done = app.upload("data", TRAIN, "--type", "train", "--institution", "mian")
    assert done.code == 0
    assert "2 units of 2025 in it are those of 'main'" in done.err
    assert "those of" not in app.upload("data", TRAIN + "\n", "--type", "train").err


def test_a_unit_stands_below_those_of_its_own_institution_only(app: CarbonApp) -> None:
    """The receipt names the parent of each unit rightly; else two could be above each other."""
    for name, units in (
        ("ia", "unit_id,name,parent_id\nA1,a,B1\n"),
        ("ib", "unit_id,name,parent_id\nB1,b,A1\n"),
    ):
        done = app.upload("units", units, "--institution", name)
        assert (done.code, "become roots" in done.err) == (0, True)
    journeys = TRAIN.replace("PHY", "A1").replace("ART", "B1")
    app.upload_and_settle("data", journeys, "--type", "train", "--institution", "ia")
    rows = app.run("report", YEAR, "--csv").out.splitlines()[1:]
    mine = {r.split(",")[2]: r.split(",")[5:7] for r in rows if r.split(",")[2] in ("A1", "B1")}
    assert {unit: own == total for unit, (own, total) in mine.items()} == {"A1": True, "B1": True}


def test_units_that_wait_are_taken_already(app: CarbonApp) -> None:
    """Both files came before either was taken in."""
    assert app.upload("units", THEIRS, "--institution", "other").code == 0
    done = app.upload("units", THEIRS, "--institution", "third")
    assert done.code == 2
    assert "is a unit of 'other' already" in done.err


def test_units_that_are_used_and_left_out_are_reported_before_and_when_it_happens(
    app: CarbonApp,
) -> None:
    fewer = UNITS.replace("PHY,Physics,SCI\n", "")
    reported = "1 units that have entries of 2025 are not in the file: PHY"
    assert reported in app.upload("units", fewer, "--what-if").err
    assert reported in app.upload("units", fewer).err
    assert "have entries" not in app.upload("units", UNITS).err


def test_uploaded_data_can_be_taken_back_and_brought_again(app: CarbonApp) -> None:
    before = app.content()
    assert app.run("withdraw", "paper", YEAR).code == 0
    assert app.settle() == []
    assert ("data_entries", f"paper|{YEAR}") not in app.content()
    assert app.milligrams() == TRAIN_MG + ELECTRICITY_MG
    assert "was withdrawn already" in app.run("withdraw", "paper", YEAR).out
    app.upload_and_settle("data", PAPER, "--type", "paper")
    after = app.content()
    assert {place for place in before if before[place] != after.get(place)} == set()


def test_a_value_is_reported_as_brought_by_the_file_of_its_moment_though_others_have_the_same_bytes(
    app: CarbonApp,
) -> None:
    dearer = FACTORS.replace(",8,g/km", ",9,g/km")
    assert app.upload("factors", dearer).code == 0
    app.upload_and_settle("factors", FACTORS, name="again.csv")
    rows = app.run("explain", YEAR, "--json").json["results"]
    reported = {(row["data_entry_type"], row["factor_version"]): row["factor_file"] for row in rows}
    assert reported["train", 3] == "again.csv"
    assert reported["paper", 1] == "factors.csv"

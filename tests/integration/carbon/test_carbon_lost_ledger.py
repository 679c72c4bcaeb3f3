"""A ledger that was lost, or put back from a backup: what it does not know is told, and not written over."""

from __future__ import annotations

import shutil
from typing import Any

from domain.carbon.tables import UNITS
from tests.command import said
from tests.integration.carbon.office import ELECTRICITY, FACTORS, PAPER, TRAIN, YEAR, Office
from tests.integration.carbon.office import UNITS as OURS

THEIRS = "unit_id,name,parent_id\nEPF,Polytechnic,\nCHE,Chemistry,EPF\n"
JOURNEYS = TRAIN.replace("PHY", "CHE").replace("ART", "EPF")
ENTRIES = ("data_entries", f"train|{YEAR}")
THEIR = ("--institution", "epfl")


def findings(office: Office) -> dict[str, dict[str, Any]]:
    found = said("status", "--json").json["findings"]
    return {f["subject"]: f for f in found if f["domain"] == "carbon"}


def lose_ledger(office: Office) -> None:
    for path in office.home.glob("ledger.db*"):
        path.unlink()
    assert said("migrate").code == 0


def of_two(office: Office) -> None:
    """Another institution has a file of the same type and year, and then nobody knows of any upload."""
    assert office.upload("units", THEIRS, *THEIR).code == 0
    assert office.upload("data", JOURNEYS, "--type", "train", *THEIR, "--wait").code == 0
    lose_ledger(office)
    shutil.rmtree(office.home / "uploads")


def bring_theirs(office: Office) -> None:
    assert office.upload("units", OURS).code == 0
    assert office.upload("factors", FACTORS).code == 0
    assert office.upload("units", THEIRS, *THEIR).code == 0
    for kind, text in (("electricity", ELECTRICITY), ("paper", PAPER)):
        assert office.upload("data", text, "--type", kind).code == 0
    done = office.upload("data", JOURNEYS, "--type", "train", *THEIR, "--wait")
    assert done.code == 1, "its own entries are not in the report"


def test_after_the_loss_of_the_ledger_rows_of_whoever_is_not_back_are_not_written_over(
    office: Office,
) -> None:
    of_two(office)
    before, mass = office.content()[ENTRIES], office.milligrams()
    bring_theirs(office)
    told = findings(office)[":".join(ENTRIES)]
    assert (told["health"], told["reason_code"]) == ("broken", "no_files")
    assert "it has rows of main (csv), and no file of theirs is known" in told["reason"]
    assert (office.content()[ENTRIES], office.milligrams()) == (before, mass)
    assert f"{ENTRIES[0]} {ENTRIES[1]} is not up to date" in office.run("report", YEAR).err
    back = office.upload("data", TRAIN, "--type", "train", "--wait")
    assert back.code == 0, back.err
    assert (office.milligrams(), findings(office)) == (mass, {})


def test_a_person_says_that_what_is_not_back_is_gone(office: Office) -> None:
    of_two(office)
    bring_theirs(office)
    assert office.run("withdraw", "train", YEAR, *THEIR, "--source", "manual").code == 2
    done = office.run("withdraw", "train", YEAR, "--wait")
    assert done.code == 0, done.err
    rows = office.sql(f"SELECT DISTINCT institution FROM carbon.{ENTRIES[0]} WHERE data_entry_type = 'train'")
    assert (rows, findings(office)) == ([{"institution": "epfl"}], {})


def test_units_that_are_not_back_stay_too_until_a_person_says_that_they_are_gone(office: Office) -> None:
    of_two(office)
    before = office.content()["units", YEAR]
    assert office.run("withdraw", "units", YEAR).code == 0, "ours are lost as well, and may be given up"
    assert office.upload("units", OURS, "--wait").code == 1
    assert findings(office)[f"units:{YEAR}"]["reason_code"] == "no_files"
    assert office.content()["units", YEAR] == before
    assert office.run("withdraw", "units", YEAR, *THEIR).code == 0
    office.run("heal")
    rows = office.sql(f"SELECT DISTINCT institution FROM {UNITS.name}")
    assert rows == [{"institution": "main"}]

"""A ledger that was lost, or put back from a backup: what it does not know is told, and not written over."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from domain.carbon.tables import UNITS
from services.carbon.intake import take_in_entries, take_in_factors
from services.carbon.unlisted import note_standing
from tests.command import said
from tests.integration.carbon.office import ELECTRICITY, FACTORS, PAPER, TRAIN, YEAR, Office
from tests.integration.carbon.office import UNITS as OURS
from tests.integration.carbon.test_carbon_standing import withhold

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


DEAR = FACTORS.replace(",8,", ",10,")
MORE = TRAIN.replace("500", "900")
FACTS = ("factors", YEAR)


def copied(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


def put_back_an_older_ledger(office: Office) -> int:
    """Newer factors and entries came after the backup; gives the mass with them."""
    ledger, backup = office.home / "ledger.db", office.folder / "ledger-of-yesterday.db"
    copied(ledger, backup)
    assert office.upload("factors", DEAR, name="dear.csv").code == 0
    assert office.upload("data", MORE, "--type", "train", "--wait", name="more.csv").code == 0
    mass = office.milligrams()
    for path in office.home.glob("ledger.db*"):
        path.unlink()
    copied(backup, ledger)
    return mass


def test_an_older_ledger_undoes_no_newer_upload_in_silence(office: Office) -> None:
    mass = put_back_an_older_ledger(office)
    before = {place: office.content()[place] for place in (ENTRIES, FACTS)}
    told = findings(office)["uploads"]
    assert (told["health"], told["reason_code"]) == ("broken", "unlisted_upload")
    assert "dear.csv (factors 2025 of main, by " in told["reason"]
    assert "more.csv (data train 2025 of main, by " in told["reason"]
    assert "`perennial carbon relist`" in told["action"]
    assert office.run("heal").code == 1
    assert {place: office.content()[place] for place in before} == before
    assert office.milligrams() == mass
    waits = findings(office)
    assert {waits[":".join(place)]["reason_code"] for place in before} == {"unlisted_upload"}


def test_a_click_undoes_no_newer_upload_either(office: Office) -> None:
    put_back_an_older_ledger(office)
    before = office.content()
    take_in_entries(office.carbon, [ENTRIES[1]], "a click", lambda _: None)
    take_in_factors(office.carbon, [YEAR], "a click", lambda _: None)
    assert office.content() == before


def test_uploads_that_an_older_ledger_does_not_know_are_listed_again(office: Office) -> None:
    mass = put_back_an_older_ledger(office)
    done = office.run("relist", "--wait")
    assert done.code == 0, done.err
    assert done.out.count("listed again") == 2
    assert (office.milligrams(), findings(office)) == (mass, {})
    assert office.run("relist").out == ""


def test_after_the_loss_of_the_ledger_every_upload_is_listed_again_in_its_order(office: Office) -> None:
    assert office.upload("factors", DEAR, "--wait").code == 0
    before, mass = office.carbon.ledger.uploads.find(), office.milligrams()
    lose_ledger(office)
    assert office.run("relist", "--wait").code == 0
    assert office.carbon.ledger.uploads.find() == before
    assert (office.milligrams(), findings(office)) == (mass, {})


def test_a_newer_file_of_its_place_answers_for_an_upload_that_is_not_listed(office: Office) -> None:
    put_back_an_older_ledger(office)
    assert office.upload("factors", DEAR, name="dear.csv").code == 0
    assert office.upload("data", TRAIN + "ART,7,1,FR\n", "--type", "train", "--wait").code == 0
    assert findings(office) == {}


def test_factors_that_newer_ones_came_after_are_not_put_before_them(office: Office) -> None:
    """Listed again they would have a newer number, and undo what came since: a person has to say."""
    put_back_an_older_ledger(office)
    assert office.upload("factors", FACTORS.replace(",8,", ",12,")).code == 0
    done = office.run("relist", "--wait", "--json")
    assert done.code == 1
    by_outcome = {one["outcome"]: one["pipeline"] for one in done.json["uploads"]}
    assert set(by_outcome) == {"overtaken", "listed"}
    assert office.run("relist", "--forget", by_outcome["overtaken"]).code == 0
    assert office.run("heal").code == 0
    assert office.milligrams() == 1000 * 2 * 12_000 + 900 * 30_000 + 7_000 * 140_000 + 100 * 700_000


def test_an_upload_that_died_before_it_was_noted_in_the_ledger_is_not_missed(office: Office) -> None:
    carbon = office.carbon
    [first, *_] = carbon.ledger.uploads.find(kind="units")
    carbon.staging.keep("01DIED", b"", carbon.staging.rows(first.pipeline_id))
    assert findings(office) == {}


def test_uploads_from_before_there_were_notes_are_noted_by_the_nightly_care(office: Office) -> None:
    carbon = office.carbon
    noted = carbon.staging.noted()
    shutil.rmtree(office.home / "uploads" / "notes")
    assert note_standing(carbon.staging, carbon.ledger) == len(noted)
    assert carbon.staging.noted() == noted


def test_rows_that_cannot_be_read_either_stop_no_look(office: Office) -> None:
    """Whose they are nobody can tell then: they wait, and are written over by nobody."""
    lose_ledger(office)
    withhold(office, "data_entries", "train")
    [told] = [v for v in office.carbon.plan().verdicts if (v.table, v.partition) == ENTRIES]
    assert told.reason_code == "lake_unreadable"

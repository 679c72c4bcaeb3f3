"""Files whose kept rows were lost, uploaded again: each takes its old place, and nothing newer is undone."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

from domain.carbon.tables import DATA_ENTRIES, FACTORS
from domain.shared.clock import Clock, machine_clock
from resources.ledger.uploads import Upload
from services.carbon.lost_rows import lost_uploads
from services.carbon.receipt import Receipt
from services.carbon.upload import File, upload
from tests.command import Said, said
from tests.integration.carbon.office import FACTORS as CHEAP
from tests.integration.carbon.office import PAPER, UNITS, YEAR, Office

DEAR = CHEAP.replace(",8,", ",10,")
BOTH_YEARS = "unit_id,mass,kind,year\nART,1000,recycled,2024\nART,100,recycled,2025\n"
NEWER = PAPER.replace("100", "200")


def lose_rows(office: Office, *lost: Upload) -> None:
    for one in lost:
        (office.home / "uploads" / one.pipeline_id / "rows.parquet").unlink()


def lose(office: Office, table: str, partition: str) -> None:
    lake = office.carbon.lake
    empty = lake.tables[table].schema.empty_table()
    lake.replace(table, partition, empty, allow_empty=True)


def uploads(office: Office, kind: str) -> list[Upload]:
    """Oldest first."""
    return office.carbon.ledger.uploads.find(kind=kind, accepted=True)[::-1]


def paper(office: Office, text: str, *options: str) -> Said:
    path = office.file("paper.csv", text)
    return office.run("upload", "data", str(path), "--type", "paper", *options)


def two_years(office: Office) -> Upload:
    """A file of two years, in one of which a newer one took its place."""
    for kind, text in (("units", UNITS), ("factors", CHEAP)):
        path = office.file(f"{kind}-2024.csv", text)
        assert office.run("upload", kind, str(path), "--year", "2024").code == 0
    assert paper(office, BOTH_YEARS, "--wait").code == 0
    older = uploads(office, "data")[-1]
    assert paper(office, NEWER, "--year", YEAR, "--wait").code == 0
    return older


def test_a_file_of_two_years_comes_back_in_the_one_year_that_it_still_speaks_of(office: Office) -> None:
    older = two_years(office)
    before, known = office.content(), uploads(office, "data")
    lose_rows(office, older)
    lose(office, DATA_ENTRIES.name, "paper|2024")
    assert office.run("heal").code == 1
    again = paper(office, BOTH_YEARS, "--wait")
    assert again.code == 0, again.err
    assert f"the lost rows of upload {older.id} are there again; newer files still come after it" in again.out
    assert (office.content(), uploads(office, "data")) == (before, known)


def test_the_receipt_of_a_file_of_two_years_names_all_that_it_took_the_place_of(office: Office) -> None:
    two_years(office)
    older, newer = uploads(office, "data")[-2:]
    again = paper(office, BOTH_YEARS + "ART,1,recycled,2025\n")
    places = [line for line in again.out.splitlines() if "in the place of" in line]
    assert [line.split(",")[0].strip() for line in places] == [
        f"in the place of upload {older.id}",
        f"in the place of upload {newer.id}",
    ]


def test_kept_rows_that_are_gone_are_told_before_anybody_needs_them(office: Office) -> None:
    def part() -> tuple[bool, str]:
        [found] = [one for one in said("doctor", "--json").json if one["part"] == "uploads"]
        return found["ok"], found["said"]

    assert part() == (True, "the rows of 5 uploads are there")
    [lost] = uploads(office, "units")
    lose_rows(office, lost)
    ok, told = part()
    assert (ok, "the kept rows of 1 of 5 uploads are gone: units.csv (units 2025" in told) == (False, True)
    assert "upload these files again" in told
    assert lost_uploads(office.carbon) == [lost]
    shutil.rmtree(office.home / "uploads")
    assert "of 5 of 5 uploads" in part()[1]


def test_the_newest_file_whose_rows_were_lost_is_no_news_when_it_comes_again(office: Office) -> None:
    before, known = office.content(), uploads(office, "units")
    lose_rows(office, *known)
    lose(office, "carbon.units", YEAR)
    assert office.run("heal").code == 1
    again = office.upload("units", UNITS, "--wait", "--json")
    [told] = again.json["files"]
    assert (again.code, told["rows_mended"], told["overtaken"]) == (0, True, False), again.err
    assert (office.content(), uploads(office, "units")) == (before, known)


def test_a_lost_file_comes_back_though_the_same_file_came_again_since(office: Office) -> None:
    """A year's factors are made of every file: that the newest of them is whole is not enough."""
    assert office.upload("factors", DEAR).code == 0
    assert office.upload("factors", CHEAP, "--wait").code == 0
    before, known = office.milligrams(), uploads(office, "factors")
    lose_rows(office, known[0])
    lose(office, FACTORS.name, YEAR)
    assert office.run("heal").code == 1
    again = office.upload("factors", CHEAP, "--wait")
    assert again.code == 0, again.err
    assert f"the lost rows of upload {known[0].id} are there again" in again.out
    assert (office.milligrams(), uploads(office, "factors")) == (before, known)
    assert "already in" in office.upload("factors", CHEAP).out
    assert office.run("heal").code == 0


def test_a_locked_year_keeps_no_lost_rows_away_that_another_year_needs(office: Office) -> None:
    """Rows that are back in their place change nothing of it."""
    older = two_years(office)
    before = office.content()
    lose_rows(office, older)
    lose(office, DATA_ENTRIES.name, "paper|2024")
    assert office.run("heal").code == 1
    assert office.run("lock", YEAR, "--reason", "published").code == 0
    again = paper(office, BOTH_YEARS, "--wait")
    assert again.code == 0, again.err
    assert office.content() == before
    assert paper(office, BOTH_YEARS + "ART,1,recycled,2025\n").code == 2, "news of a locked year are refused"


def restores(office: Office, text: str, clock: Clock = machine_clock) -> Receipt:
    carbon = office.carbon
    carbon = replace(carbon, ledger=replace(carbon.ledger, clock=clock))
    return upload(carbon, File("factors", "factors.csv", text.encode(), "ada", year=int(YEAR)))


def overtaken_factors(office: Office) -> Upload:
    """A file of factors that newer values came after, without its rows."""
    assert office.upload("factors", DEAR, "--wait").code == 0
    older = uploads(office, "factors")[0]
    lose_rows(office, older)
    return older


def test_of_several_who_restore_the_same_file_at_once_none_undoes_newer_values(office: Office) -> None:
    older, before = overtaken_factors(office), office.milligrams()
    known = uploads(office, "factors")
    with ThreadPoolExecutor(4) as pool:
        receipts = list(pool.map(lambda _: restores(office, CHEAP), range(4)))
    assert {(one.upload.id, one.mended, one.overtaken) for one in receipts} == {(older.id, True, True)}
    assert office.run("heal").code == 0
    assert (office.milligrams(), uploads(office, "factors")) == (before, known)


def test_whoever_restores_the_same_file_later_that_day_is_told_how_to_make_it_the_newest(
    office: Office,
) -> None:
    older = overtaken_factors(office)
    assert office.upload("factors", CHEAP).code == 0
    known = uploads(office, "factors")
    again = office.upload("factors", CHEAP)
    assert f"the lost rows of upload {older.id} are there again; newer files still come after it" in again.out
    assert "to make it the newest, upload it again with --as-newest" in again.err
    assert uploads(office, "factors") == known
    meant = office.upload("factors", CHEAP, "--as-newest")
    assert meant.code == 0, meant.err
    assert uploads(office, "factors")[-1].id > known[-1].id
    assert "already in" in office.upload("factors", CHEAP).out


def test_long_after_a_restore_the_same_file_is_news_again(office: Office) -> None:
    overtaken_factors(office)
    assert restores(office, CHEAP).mended
    later = restores(office, CHEAP, lambda: machine_clock() + timedelta(days=2))
    assert (later.mended, later.known) == (False, False)

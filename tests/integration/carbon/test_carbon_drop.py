"""The drop folder: whole files are taken once, refused ones say why, and nothing is lost."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from assets.carbon.drop import LEFT_BEHIND, SETTLED, take_dropped
from tests.integration.carbon.office import FACTORS, PAPER, YEAR, Office


@pytest.fixture
def drop(office: Office) -> Path:
    return office.home / "drop"


def put(drop: Path, place: str, text: str) -> Path:
    path = drop / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def taken(office: Office, drop: Path, later: float = SETTLED + 1) -> list[tuple[str, str]]:
    found = take_dropped(office.carbon, drop, time.time() + later)
    return [(one.path.name, one.outcome) for one in found]


def test_a_file_is_taken_by_what_its_folders_say(office: Office, drop: Path) -> None:
    put(drop, f"data/paper/{YEAR}/more.csv", PAPER.replace("100", "200"))
    assert taken(office, drop) == [("more.csv", "taken")]
    assert office.run("heal").code == 0
    assert office.sql(
        "SELECT sum(quantity) AS kg FROM carbon.data_entries WHERE data_entry_type = 'paper'"
    ) == [{"kg": 200.0}]
    assert (drop / "taken" / "data" / "paper" / YEAR / "more.csv").is_file()
    assert taken(office, drop) == []


def test_a_file_that_is_still_being_copied_is_left_alone(office: Office, drop: Path) -> None:
    path = put(drop, f"factors/{YEAR}/f.csv", FACTORS)
    assert taken(office, drop, later=0) == []
    assert path.exists()


def test_hidden_files_are_nobodys(office: Office, drop: Path) -> None:
    put(drop, f"factors/{YEAR}/.f.csv.part", FACTORS)
    put(drop, f"factors/.cache/{YEAR}/f.csv", FACTORS)
    assert taken(office, drop) == []


def test_a_refused_file_lies_beside_its_problems_and_changes_nothing(office: Office, drop: Path) -> None:
    before = office.content(), office.due()
    put(drop, f"data/paper/{YEAR}/bad.csv", "unit_id,mass\nNOBODY,-1\n")
    assert taken(office, drop) == [("bad.csv", "refused")]
    told = (drop / "refused" / "data" / "paper" / YEAR / "bad.csv.problems.txt").read_text().splitlines()
    assert [line.split(":")[0] for line in told] == ["line 2, column mass", "line 2, column unit_id"]
    assert (office.content(), office.due()) == before


def test_two_files_of_one_name_are_both_kept(office: Office, drop: Path) -> None:
    for text in (FACTORS, FACTORS.replace("0.7", "0.8")):
        put(drop, f"factors/{YEAR}/f.csv", text)
        assert taken(office, drop) == [("f.csv", "taken")]
    assert sorted(p.name for p in (drop / "taken" / "factors" / YEAR).iterdir()) == ["f-2.csv", "f.csv"]


def test_what_a_dead_taker_left_is_put_back_and_taken(office: Office, drop: Path) -> None:
    path = put(drop, f"taking/factors/{YEAR}/f.csv", FACTORS)
    os.utime(path, (0, 0))
    assert taken(office, drop) == []
    assert taken(office, drop, later=LEFT_BEHIND + 1) == [("f.csv", "taken")]


def test_a_locked_year_refuses_and_says_why(office: Office, drop: Path) -> None:
    office.run("lock", YEAR, "--reason", "published")
    put(drop, f"factors/{YEAR}/f.csv", FACTORS.replace("0.7", "0.8"))
    assert taken(office, drop) == [("f.csv", "refused")]
    told = drop / "refused" / "factors" / YEAR / "f.csv.problems.txt"
    assert told.read_text().startswith(f"{YEAR} is locked by")

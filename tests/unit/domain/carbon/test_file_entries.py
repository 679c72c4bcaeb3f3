"""Files of data entries: what each row counts, and how each wrong cell is reported."""

from __future__ import annotations

import json

import pytest

from domain.shared.error import InvalidInput
from tests.unit.domain.carbon.files import (
    Case,
    Refused,
    Taken,
    check,
    csv,
    entries,
    entry_file,
    of_type,
    parameters,
    places,
)

ANY = of_type(None, year=None)
ANY_TYPE = of_type(None)
ANY_YEAR = of_type("train", year=None)
ELECTRICITY = of_type("electricity")
PLANE = of_type("plane")
ROAD = of_type("road")


def refused(*problems: tuple[int, str, str], words: str = "") -> Refused:
    return Refused(problems, [words] if words else [])


TYPES = (
    entry_file(
        "in a column",
        csv("year,data_entry_type,unit_id,distance", "2025,train,A,1", "2024,TRAIN,A,2"),
        Taken({"year": [2025, 2024], "data_entry_type": ["train", "train"], "quantity": [1, 2]}),
        ANY,
    ),
    entry_file(
        "misspelt, and none beside",
        csv("data_entry_typ,unit_id,distance", "train,A,1"),
        refused((1, "data_entry_type", "missing_column"), words="is it the column data_entry_typ?"),
        ANY_TYPE,
    ),
    entry_file(
        "unknown",
        csv("data_entry_type,unit_id,distance", "rocket,A,1"),
        refused((1, "data_entry_type", "unknown_type"), words="'rocket' is none of"),
        ANY_TYPE,
    ),
    entry_file(
        "two",
        csv("data_entry_type,unit_id,distance", "train,A,1", "plane,A,2", "train,A,3", ",A,4"),
        refused((3, "data_entry_type", "other_type"), (5, "data_entry_type", "other_type")),
        ANY_TYPE,
    ),
    entry_file(
        "another beside",
        csv("data_entry_type,unit_id,distance", "plane,A,1"),
        refused((2, "data_entry_type", "other_type"), words="is not train"),
    ),
    entry_file(
        "columns of another",
        csv("unit_id,consumption", "A,1"),
        refused((1, "distance", "missing_column"), (1, "consumption", "unknown_column")),
    ),
)

YEARS = (
    entry_file(
        "several",
        csv("year,unit_id,distance", "2025,B,1", "2024,A,2"),
        Taken({"year": [2025, 2024]}),
        ANY_YEAR,
    ),
    entry_file("given beside", csv("unit_id,distance", "A,1"), Taken({"year": [2025]})),
    entry_file(
        "misspelt",
        csv("yaer,unit_id,distance", "2025,A,1"),
        refused((1, "yaer", "unknown_column"), words="do you mean year?"),
    ),
    entry_file(
        "no years",
        csv(
            "year,unit_id,distance",
            "1989,A,1",
            "2101,A,1",
            "25,A,1",
            ",A,1",
            "2025.5,A,1",
            "two,A,1",
            "2025,A,1",
        ),
        Refused([(line, "year", "year") for line in range(2, 8)]),
        ANY_YEAR,
    ),
    entry_file(
        "another than given",
        csv("year,unit_id,distance", "2025,A,1", "2024,B,1", "2030,A,1"),
        refused((3, "year", "other_year"), (4, "year", "other_year"), words="is not 2025"),
    ),
    entry_file(
        "no units known",
        csv("year,unit_id,distance", "2030,A,1", "2025,A,1"),
        refused((2, "year", "no_units"), words="upload them first"),
        ANY_YEAR,
    ),
    entry_file(
        "a unit of another year",
        csv("year,unit_id,distance", "2024,B,1", "2025,B,1"),
        refused((2, "unit_id", "unknown_unit_id"), words="'B' is no unit of 2024"),
        ANY_YEAR,
    ),
    entry_file(
        "absurd beside",
        csv("unit_id,distance", "A,1"),
        refused((1, "year", "year")),
        of_type("train", year=20255),
    ),
)

VALUES = (
    entry_file(
        "a unit nobody knows",
        csv("unit_id,distance", "A,1", "C,1"),
        refused((3, "unit_id", "unknown_unit_id")),
    ),
    entry_file(
        "a unit in other letters", csv("unit_id,distance", "Zu\u0308rich,1"), Taken({"unit_id": ["Zürich"]})
    ),
    entry_file("no unit", csv("unit_id,distance", ",1"), refused((2, "unit_id", "missing"))),
    entry_file(
        "a formula for a unit",
        csv("unit_id,distance", '"=HYPERLINK(""x"")",1'),
        refused((2, "unit_id", "formula"), (2, "unit_id", "unknown_unit_id")),
    ),
    entry_file(
        "yes and no",
        csv("unit_id,distance,round_trip", "A,1,YES", "A,1,n", "A,1,1", "A,1,False", "A,1,"),
        Taken({"quantity": [2, 1, 2, 1, 1]}),
    ),
    entry_file(
        "neither yes nor no",
        csv("unit_id,distance,round_trip", "A,1,maybe", "A,1,2", "A,1,oui", "A,1,x"),
        Refused([(line, "round_trip", "not_yes_or_no") for line in range(2, 6)]),
    ),
    entry_file(
        "shares",
        csv("unit_id,consumption,use_share", "A,100,0", "A,100,1", "A,100,0.25", "A,100,"),
        Taken({"quantity": [0, 100, 25, 100]}),
        ELECTRICITY,
    ),
    entry_file(
        "no shares",
        csv("unit_id,consumption,use_share", "A,100,1.01", "A,100,35", "A,100,35%", "A,100,-0.5"),
        refused(
            (2, "use_share", "share"),
            (3, "use_share", "share"),
            (4, "use_share", "not_a_number"),
            (5, "use_share", "negative"),
        ),
        ELECTRICITY,
    ),
    entry_file(
        "a note as people write",
        csv("unit_id,distance,note", 'A,1,"two\nlines\tand ✈"', "A,2,-5 °C", "A,3,"),
        Taken({"note": ["two\nlines\tand ✈", "-5 °C", None]}),
    ),
    entry_file(
        "a note that a spreadsheet would run",
        csv("unit_id,distance,note", "A,1,=1+1", "A,1,#REF!", "A,1,#4 of ours", "A,1,a=b"),
        refused((2, "note", "formula"), (3, "note", "formula")),
    ),
    entry_file(
        "a note that nobody can see",
        csv(
            "unit_id,distance,note", "A,1,a\x07", "A,1,a\x1b[2J", "A,1,a\u200bb", "A,1,\u202eabc", "A,1,a\x7f"
        ),
        Refused([(line, "note", "control_character") for line in range(2, 7)]),
    ),
    entry_file(
        "an endless note", csv("unit_id,distance,note", "A,1," + "x" * 2001), refused((2, "note", "too_long"))
    ),
    entry_file(
        "a long note", csv("unit_id,distance,note", "A,1," + "ä" * 2000), Taken({"note": ["ä" * 2000]})
    ),
    entry_file(
        "a word of the catalogue",
        csv("unit_id,distance,vehicle", "A,1,TAXI", "A,1,tank", "A,1,"),
        refused((3, "vehicle", "unknown_value"), (4, "vehicle", "missing")),
        ROAD,
    ),
    entry_file(
        "a required key without its column",
        csv("unit_id,distance", "A,1"),
        refused((1, "vehicle", "missing_column")),
        ROAD,
    ),
)

QUANTITIES = (
    entry_file(
        "units of length",
        csv("unit_id,distance,unit", "A,1500,m", "A,1,mi", "A,2,", "A,3,KM", "A,1,miles"),
        Taken({"quantity": [1500, 1, 2, 3, 1], "unit": ["m", "mi", "km", "km", "mi"]}),
    ),
    entry_file(
        "units of energy",
        csv("unit_id,consumption,unit", "A,1,GJ", "A,2,MWh", "A,3,kwh"),
        Taken({"quantity": [1, 2, 3], "unit": ["GJ", "MWh", "kWh"]}),
        ELECTRICITY,
    ),
    entry_file(
        "classes by the distance in any unit",
        csv("unit_id,distance,unit", "A,1499999,m", "A,1500,km", "A,3000,mi"),
        Taken(
            {
                "classification": [
                    f'{{"cabin":"economy","haul":"{h}"}}' for h in ("short", "medium", "long")
                ],
                "quantity": [1499999 + 95_000, 1595, 3000 + 95 / 1.609344],
            }
        ),
        PLANE,
    ),
    entry_file(
        "units of something else",
        csv("unit_id,distance,unit", "A,1,kWh", "A,1,furlong", "A,1,k m"),
        Refused([(line, "unit", "unknown_unit") for line in (2, 3, 4)], ["one of km, m, mi, nmi"]),
    ),
    entry_file(
        "measured, with and without an amount",
        csv("unit_id,distance,kg_co2eq", "A,10,", "A,10,7.5", "A,,7.5", "A,10,0"),
        Taken({"quantity": [10, 10, 0, 10], "kg_co2eq": [None, 7.5, 7.5, 0]}),
    ),
    entry_file(
        "neither measured nor an amount",
        csv("unit_id,distance,kg_co2eq", "A,,", "A,,x", "A,,-1"),
        refused((2, "distance", "missing"), (3, "kg_co2eq", "not_a_number"), (4, "kg_co2eq", "negative")),
    ),
    entry_file("measured only", csv("unit_id,kg_co2eq", "A,5"), Taken({"kg_co2eq": [5], "quantity": [0]})),
    entry_file(
        "measured only, and not",
        csv("unit_id,kg_co2eq,note", "A,5,", "A,,why"),
        refused((3, "kg_co2eq", "missing"), words="the file has no distance"),
    ),
    entry_file(
        "what rows say is kept",
        csv("unit_id,distance,passengers,country", "A,10,2,CH", "A,10,,"),
        Taken(
            {
                "quantity": [20, 10],
                "classification": ['{"country":"CH"}', '{"country":"world"}'],
                "entry_id": ["line 2", "line 3"],
                "line": [2, 3],
                "source": ["csv", "csv"],
                "institution": ["main", "main"],
            }
        ),
    ),
)

DOUBLED = (
    entry_file(
        "the same",
        csv("entry_id,unit_id,distance", "x,A,1", "y,A,2", "", "x,A,1.0"),
        Taken({"entry_id": ["x", "y"], "quantity": [1, 2]}, ["line 5 is the same as line 2"]),
    ),
    entry_file(
        "another amount",
        csv("entry_id,unit_id,distance", "x,A,1", "y,A,2", "x,A,3"),
        Refused(
            [(2, "entry_id", "duplicate"), (4, "entry_id", "duplicate")],
            ["is also on line 4", "is also on line 2"],
        ),
    ),
    entry_file(
        "another, but calculated the same",
        csv("entry_id,unit_id,distance,passengers", "x,A,2,1", "x,A,1,2"),
        refused((2, "entry_id", "duplicate"), (3, "entry_id", "duplicate")),
    ),
    entry_file(
        "in another year",
        csv("year,entry_id,unit_id,distance", "2025,x,A,1", "2024,x,A,2"),
        Taken({"entry_id": ["x", "x"]}),
        ANY_YEAR,
    ),
    entry_file(
        "empty",
        csv("entry_id,unit_id,distance", ",A,1", ",A,2"),
        refused((2, "entry_id", "missing"), (3, "entry_id", "missing")),
    ),
    entry_file(
        "without any", csv("unit_id,distance", "A,1", "A,1"), Taken({"entry_id": ["line 2", "line 3"]})
    ),
)


@parameters(*TYPES, *[Case(f"year: {c.name}", c.content, c.expected, c.read) for c in YEARS])
def test_read_entries__type_and_year__are_given_once_and_agree(case: Case) -> None:
    check(case)


@parameters(*VALUES, *QUANTITIES)
def test_read_entries__any_value__is_read_or_refused(case: Case) -> None:
    check(case)


@parameters(*DOUBLED)
def test_read_entries__repeated_entry__is_merged_or_refused(case: Case) -> None:
    check(case)


def test_the_details_are_json_whatever_a_row_holds() -> None:
    parsed = entries(csv("unit_id,distance,kg_co2eq,round_trip", "A,,1,yes", "A,0.1,,no", "A,1e999,,"))
    assert [json.loads(text) for text in parsed.frame.column("details").to_pylist()] == [
        {"distance": None, "passengers": 1, "round_trip": True, "country": "world"},
        {"distance": 0.1, "passengers": 1, "round_trip": False, "country": "world"},
    ]


def test_a_row_may_have_several_problems() -> None:
    parsed = entries(csv("year,unit_id,distance,unit,round_trip", "1,C,x,y,z", "2025,A,1,km,no"))
    assert places(parsed.problems) == [
        (2, "distance", "not_a_number"),
        (2, "round_trip", "not_yes_or_no"),
        (2, "unit", "unknown_unit"),
        (2, "year", "year"),
    ]
    assert (parsed.rows, parsed.bad_rows, parsed.problem_count) == (2, 1, 4)


def test_a_type_given_beside_that_nobody_knows_is_no_matter_of_the_file() -> None:
    with pytest.raises(InvalidInput, match="no data entry type 'rocket'"):
        entries(csv("unit_id,distance", "A,1"), "rocket")

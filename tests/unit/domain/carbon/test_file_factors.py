"""Files of emission factors: what each is for, in however many spellings, and each but once."""

from __future__ import annotations

import pytest

from domain.carbon.classification import factor_id
from tests.unit.domain.carbon.files import (
    Case,
    Refused,
    Taken,
    check,
    csv,
    factor_file,
    factors,
    parameters,
    places,
)

PLANE = '{"cabin":"economy","haul":"short"}'


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def plane(*texts: str) -> bytes:
    rows = [f"plane,flight_co2,{quoted(text)},0.15,kg/km" for text in texts]
    return csv("data_entry_type,emission_type,classification,value,unit", *rows)


def gas(*texts: str) -> bytes:
    return csv(
        "data_entry_type,classification,value,unit", *(f"refrigerant,{quoted(t)},1430,kg/kg" for t in texts)
    )


def classified(*texts: str) -> Taken:
    return Taken({"classification": texts})


def wrong(code: str = "classification", *words: str) -> Refused:
    return Refused([(2, "classification", code)], words)


SPELLINGS = (
    factor_file("keys in another order", plane('{"haul":"short","cabin":"economy"}'), classified(PLANE)),
    factor_file(
        "none where none is needed",
        csv("data_entry_type,value,unit", "home_office,0.1,kg/h"),
        classified("{}"),
    ),
    factor_file(
        "a column for each key",
        csv("data_entry_type,emission_type,cabin,haul,value,unit", "plane,flight_co2,First,LONG,0.5,kg/km"),
        classified('{"cabin":"first","haul":"long"}'),
    ),
    factor_file(
        "one key in JSON, one in a column",
        csv(
            "data_entry_type,emission_type,classification,haul,value,unit",
            'plane,flight_co2,"{""cabin"":""first""}",long,0.5,kg/km',
        ),
        classified('{"cabin":"first","haul":"long"}'),
    ),
    factor_file(
        "columns of several types",
        csv(
            "data_entry_type,emission_type,gas,cabin,haul,value,unit",
            "refrigerant,,R134a,,,1430,kg/kg",
            "plane,flight_co2,,first,long,1,kg/km",
        ),
        classified('{"gas":"R134a"}', '{"cabin":"first","haul":"long"}'),
    ),
)

MISTAKES = (
    factor_file(
        "no JSON",
        plane("{cabin: economy, haul: short}"),
        wrong("classification", "is no JSON object", "column of its own"),
    ),
    factor_file(
        "a key that is null",
        plane('{"cabin":"economy","haul":null}'),
        wrong("classification", "does not say haul, which plane needs"),
    ),
    factor_file("nothing at all", plane(""), wrong("classification", "does not say cabin, haul")),
    factor_file(
        "a key too many",
        plane('{"cabin":"economy","haul":"short","meal":"vegan"}'),
        wrong("classification", "'meal' does not choose a factor of plane: cabin, haul does"),
    ),
    factor_file(
        "a key twice",
        plane('{"cabin":"economy","cabin":"first","haul":"short"}'),
        wrong("classification", "comes twice"),
    ),
    factor_file(
        "nested",
        plane('{"cabin":{"is":"economy"},"haul":"short"}'),
        wrong("classification", "more than one value"),
    ),
    factor_file(
        "a word that is none",
        plane('{"cabin":"balcony","haul":"short"}'),
        wrong("unknown_value", "none of economy, premium_economy"),
    ),
    factor_file("nested without end", plane("[" * 1_900), wrong()),
    factor_file("a million brackets", plane("[" * 1_000_000), wrong("too_long")),
    factor_file("an endless word", gas('{"gas":"' + "x" * 2_000 + '"}'), wrong("too_long")),
    factor_file("a NUL in an escape", gas('{"gas":"a\\u0000b"}'), wrong("control_character")),
    factor_file("something invisible in an escape", gas('{"gas":"a\\u200bb"}'), wrong("control_character")),
    factor_file("a formula inside", gas('{"gas":"=1+1"}'), wrong("formula")),
    factor_file(
        "a formula in a key's column",
        csv("data_entry_type,gas,value,unit", "refrigerant,=1+1,1,kg/kg"),
        Refused([(2, "gas", "formula")]),
    ),
    factor_file(
        "JSON and column that differ",
        csv(
            "data_entry_type,classification,gas,value,unit",
            'refrigerant,"{""gas"":""R134a""}",R32,1430,kg/kg',
        ),
        wrong("classification", "gas is 'R134a' here and 'R32' in its own column"),
    ),
)

CELLS = (
    factor_file(
        "the only emission type",
        csv("data_entry_type,value,unit", "home_office,0.1,kg/h"),
        Taken({"emission_type": ["home_office"], "value": [0.1], "unit": ["kg/h"], "year": [2025]}),
    ),
    factor_file(
        "units in all spellings",
        csv(
            "data_entry_type,mix,emission_type,value,unit",
            *(
                f"electricity,m{n},electricity,1,{unit}"
                for n, unit in enumerate(["kg/kWh", "kg CO2e per kWh", "g/kwh", "t/MWh", "kgCO₂e/GJ"])
            ),
        ),
        Taken({"unit": ["kg/kWh", "kg/kWh", "g/kWh", "t/MWh", "kg/GJ"]}),
    ),
    factor_file(
        "no emission type where there are several",
        csv("data_entry_type,cabin,haul,value,unit", "plane,first,long,1,kg/km"),
        Refused([(2, "emission_type", "missing")], ["is empty: plane needs flight_co2 or flight_non_co2"]),
    ),
    factor_file(
        "an emission type of another type",
        csv("data_entry_type,emission_type,country,value,unit", "train,flight_co2,CH,1,kg/km"),
        Refused([(2, "emission_type", "unknown_emission_type")], ["one of train"]),
    ),
    factor_file(
        "a type nobody knows",
        csv("data_entry_type,value,unit", "rocket,1,kg/km", ",1,kg/km", "home_office,1,kg/h"),
        Refused([(2, "data_entry_type", "unknown_value"), (3, "data_entry_type", "missing")], ["plane"]),
    ),
    factor_file(
        "units that are none",
        csv(
            "data_entry_type,value,unit",
            "home_office,1,kg",
            "home_office,1,lb/h",
            "home_office,1,kg/fortnight",
            "home_office,1,",
        ),
        Refused(
            [
                (2, "unit", "unknown_unit"),
                (3, "unit", "unknown_unit"),
                (4, "unit", "unknown_unit"),
                (5, "unit", "missing"),
            ]
        ),
    ),
    factor_file(
        "a unit of something else",
        csv("data_entry_type,value,unit", "home_office,1,kg/km"),
        Refused([(2, "unit", "unit_mismatch")], ["counts by km, and home_office is counted in h"]),
    ),
    factor_file(
        "values that are none",
        csv(
            "data_entry_type,value,unit",
            "home_office,-1,kg/h",
            "home_office,NaN,kg/h",
            "home_office,,kg/h",
            "home_office,inf,kg/h",
            "home_office,1e308,kg/h",
        ),
        Refused(
            [
                (2, "value", "negative"),
                (3, "value", "not_a_number"),
                (4, "value", "missing"),
                (5, "value", "not_a_number"),
                (6, "value", "too_large"),
            ]
        ),
    ),
    factor_file(
        "a source that a spreadsheet would run",
        csv("data_entry_type,value,unit,source", "home_office,1,kg/h,=cmd"),
        Refused([(2, "source", "formula")]),
    ),
    factor_file(
        "years",
        csv(
            "year,data_entry_type,value,unit",
            "2025,home_office,1,kg/h",
            "1899,home_office,1,kg/h",
            "2024,home_office,1,kg/h",
        ),
        Refused([(3, "year", "year"), (4, "year", "other_year")]),
    ),
    factor_file(
        "misspelt columns",
        csv("data_entry_type,emission,value,units", "home_office,,1,kg/h"),
        Refused(
            [
                (1, "unit", "missing_column"),
                (1, "emission", "unknown_column"),
                (1, "units", "unknown_column"),
            ],
            ["do you mean unit?"],
        ),
    ),
)

DOUBLED = (
    factor_file(
        "the same in other spellings",
        plane('{"cabin":"economy","haul":"short"}', '{"haul": "SHORT", "Cabin": "economy"}'),
        Taken({"classification": [PLANE], "line": [2]}, ["line 3 is the same as line 2"]),
    ),
    factor_file(
        "1 and 1.0 and a text",
        gas('{"gas":1}', '{"gas":1.0}', '{"gas":"1"}'),
        Taken({"line": [2]}, ["line 3 is the same as line 2", "line 4 is the same as line 2"]),
    ),
    factor_file(
        "another value",
        csv("data_entry_type,value,unit", "home_office,1,kg/h", "", "home_office,2,kg/h"),
        Refused(
            [(2, "value", "duplicate"), (4, "value", "duplicate")],
            ["also on line 4", "also on line 2"],
        ),
    ),
    factor_file(
        "another unit",
        csv("data_entry_type,value,unit", "home_office,1,kg/h", "home_office,1,g/h"),
        Refused([(2, "value", "duplicate"), (3, "value", "duplicate")]),
    ),
    factor_file(
        "another source only",
        csv("data_entry_type,value,unit,source", "home_office,1,kg/h,old", "home_office,1.0,kg / h,new"),
        Taken({"source": ["old"]}, ["line 3"]),
    ),
)


@parameters(*SPELLINGS, *MISTAKES)
def test_read_factors__classification__has_one_spelling(case: Case) -> None:
    check(case)


@parameters(*CELLS)
def test_read_factors__any_value__is_read_or_refused(case: Case) -> None:
    check(case)


@parameters(*DOUBLED)
def test_read_factors__repeated_factor__is_merged_or_refused(case: Case) -> None:
    check(case)


def test_a_factor_of_another_year_is_another() -> None:
    content = csv("year,data_entry_type,value,unit", "2025,home_office,1,kg/h", "2024,home_office,2,kg/h")
    parsed = factors(content, year=None)
    assert parsed.years == [2024, 2025]
    assert parsed.frame.column("factor_id").to_pylist() == [
        factor_id(2025, "home_office", "home_office", "{}"),
        factor_id(2024, "home_office", "home_office", "{}"),
    ]


def test_of_two_values_of_a_factor_none_is_taken_with_the_good_rows() -> None:
    """Which of them is right, the file does not say; and it is not whichever comes first."""
    content = csv(
        "data_entry_type,emission_type,fuel,value,unit",
        "home_office,,,1,kg/h",
        "vehicle_fuel,vehicle_fuel,petrol,2.3,kg/l",
        "home_office,,,2,kg/h",
    )
    parsed = factors(content).or_refused("it", accept_valid=True)
    assert parsed.frame.column("data_entry_type").to_pylist() == ["vehicle_fuel"]
    assert places(parsed.problems) == [(2, "value", "duplicate"), (4, "value", "duplicate")]


@pytest.mark.parametrize("count", [99, 100, 101, 150])
def test_warnings_of_repeated_lines_are_as_many_as_one_can_read(count: int) -> None:
    parsed = factors(csv("data_entry_type,value,unit", *["home_office,1,kg/h"] * (count + 1)))
    assert parsed.frame.num_rows == 1
    assert parsed.bad_rows == 0
    assert len(parsed.warnings) == min(count, 101)
    if count > 100:
        assert parsed.warnings[-1] == f"{count - 100} more lines say the same as others"


def test_of_a_given_type_no_row_needs_to_name_it() -> None:
    for content in (csv("value,unit", "1,kg/h"), csv("data_entry_type,value,unit", ",1,kg/h")):
        parsed = factors(content, data_entry_type="home_office")
        assert parsed.problems == ()
        assert parsed.frame.column("data_entry_type").to_pylist() == ["home_office"]


def test_of_a_given_type_rows_of_others_are_refused() -> None:
    content = csv("data_entry_type,fuel,value,unit", "home_office,,1,kg/h", "vehicle_fuel,petrol,2,kg/l")
    parsed = factors(content, data_entry_type="home_office")
    assert places(parsed.problems) == [(3, "data_entry_type", "other_type")]
    assert parsed.frame.column("data_entry_type").to_pylist() == ["home_office"]

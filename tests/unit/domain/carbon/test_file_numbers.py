"""Numbers in all spellings: one mark to a file, and no thousandfold mistake by a guess."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.domain.carbon.files import (
    Case,
    Refused,
    Taken,
    check,
    csv,
    entries,
    entry_file,
    factor_file,
    of_type,
    parameters,
    places,
)


def distances(name: str, written: str, expected: Taken | Refused, **said: object) -> Case:
    """A number to a line; with quotes around, no delimiter is in the way."""
    rows = [f'A,"{cell}"' for cell in written.split("/")]
    return entry_file(name, csv("unit_id,distance", *rows), expected, of_type("train", **said))  # type: ignore[arg-type]


def amounts(*values: float) -> Taken:
    return Taken({"quantity": values})


def wrong(code: str, *lines: int) -> Refused:
    return Refused([(line, "distance", code) for line in lines])


READ = (
    distances("plain", "0/1/12.5/.5/5./007/+3", amounts(0, 1, 12.5, 0.5, 5, 7, 3)),
    distances("with exponents", "1e3/1.5E+3/2e-1", amounts(1000, 1500, 0.2)),
    distances("thousands with apostrophes", "1'234.5/12’345", amounts(1234.5, 12345)),
    distances(
        "thousands with spaces", "1 234,5/12\u00a0345/1\u202f234\u2009567", amounts(1234.5, 12345, 1234567)
    ),
    distances("spaces around", " 12.5 /\u00a07\u202f", amounts(12.5, 7)),
    distances("a comma is thousands where a point is decimal", "1,234/0.5", amounts(1234, 0.5)),
    distances("a comma is decimal where another is", "1,234/0,5", amounts(1.234, 0.5)),
    distances("a point and thousandths", "1.234/7", amounts(1.234, 7)),
    distances("1,234 and a word beside", "1,234", amounts(1.234), mark="comma"),
    distances("1,234 and the other word beside", "1,234", amounts(1234), mark="point"),
    distances("12.345 and a word beside", "12.345/1", amounts(12345, 1), mark="comma"),
    distances("minus zero is zero", "-0/-0.0", amounts(0.0, 0.0)),
    distances("the most", "1e12", amounts(1e12)),
    entry_file(
        "a semicolon and other numbers that tell", "unit_id;distance\nA;1.234\nA;0.5\n", amounts(1.234, 0.5)
    ),
)

REFUSED = (
    distances("thousand or decimal", "1,234/7/12,345", wrong("ambiguous_number", 2, 4)),
    entry_file(
        "a point in a file of semicolons",
        "unit_id;distance\nA;1.234\nA;7\n",
        Refused([(2, "distance", "ambiguous_number")], ["--decimal"]),
    ),
    entry_file(
        "a point in a spreadsheet's text with tabs",
        "unit_id\tdistance\nA\t480.000\nA\t7\n",
        Refused([(2, "distance", "ambiguous_number")], ["--decimal"]),
    ),
    entry_file(
        "both marks in a file of semicolons",
        "unit_id;distance\nA;1.234\nA;1,234\n",
        wrong("ambiguous_number", 2, 3),
    ),
    distances("mixed, mostly points", "1.5/2.5/2,5", wrong("not_a_number", 4)),
    distances(
        "mixed, and one that may be either",
        "1.5/2.5/2,5/1,234",
        Refused([(4, "distance", "not_a_number"), (5, "distance", "ambiguous_number")]),
    ),
    distances("not the mark that was given", "1.5/2,5", wrong("not_a_number", 2), mark="comma"),
    distances("groups that are none", "1,23,456.5/12 34/1'2345", wrong("not_a_number", 2, 3, 4)),
    distances(
        "no numbers", "NaN/inf/-inf/nan/Infinity/1.2.3/0x1A/1_000", wrong("not_a_number", *range(2, 10))
    ),
    distances("words", "ten/12 km/35%/CHF 5/-/n.a./#REF!", wrong("not_a_number", *range(2, 9))),
    distances("a formula", "=1+2", wrong("not_a_number", 2)),
    distances("digits of another script", "١٢٣/１２", wrong("not_a_number", 2, 3)),
    distances(
        "negative",
        "-1/-0.001/−5",
        Refused([(2, "distance", "negative"), (3, "distance", "negative"), (4, "distance", "not_a_number")]),
    ),
    distances("absurd", "1e308/1e999/1.1e12/9999999999999", wrong("too_large", 2, 3, 4, 5)),
    distances("an endless exponent", "1e9999", wrong("not_a_number", 2)),
    distances("empty", "/5", wrong("missing", 2)),
    entry_file(
        "in a column beside",
        "unit_id,distance,passengers\nA,1,x\nA,1,-2\nA,1,1e13\n",
        Refused(
            [(2, "passengers", "not_a_number"), (3, "passengers", "negative"), (4, "passengers", "too_large")]
        ),
    ),
    entry_file(
        "each possible, and absurd together",
        "unit_id,distance,passengers\nA,1e11,1e11\nA,1e12,1e12\nA,5,2\n",
        wrong("too_large", 2, 3),
    ),
    factor_file(
        "no factor is so large",
        "data_entry_type,value,unit\nhome_office,1e10,kg/h\n",
        Refused([(2, "value", "too_large")]),
    ),
    factor_file(
        "no factor may be either",
        'data_entry_type,value,unit\nhome_office,"1,234",kg/h\n',
        Refused([(2, "value", "ambiguous_number")]),
    ),
)


@parameters(*READ, *REFUSED)
def test_a_number_is_read_as_it_is_meant_or_refused(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("column", ["distance", "kg_co2eq", "passengers"])
def test_the_mark_is_reported_by_all_columns_together(column: str) -> None:
    header = ["distance", "passengers", "kg_co2eq"]
    cells = ['"1,234"' if name != column else '"0,5"' for name in header]
    parsed = entries(csv(",".join(["unit_id", *header]), ",".join(["A", *cells])))
    assert parsed.problems == ()
    assert parsed.frame.column("kg_co2eq").to_pylist() == [0.5 if column == "kg_co2eq" else 1.234]


def test_an_ambiguous_number_is_not_taken_with_the_good_rows() -> None:
    parsed = entries(csv("unit_id,distance", 'A,"1,234"', "A,5")).or_refused("it", accept_valid=True)
    assert parsed.frame.column("quantity").to_pylist() == [5]
    assert places(parsed.problems) == [(2, "distance", "ambiguous_number")]


STYLES = {
    "1,234.50": (",", "."),
    "1.234,50": (".", ","),
    "1'234.50": ("'", "."),
    "1 234,50": ("\u202f", ","),
    "1234.50": ("", "."),
    "1234,50": ("", ","),
}


@given(st.lists(st.integers(0, 10**11), min_size=1, max_size=20), st.sampled_from(sorted(STYLES)))
def test_whatever_a_program_writes_with_two_decimals_is_read_back(cents: list[int], style: str) -> None:
    thousands, decimal = STYLES[style]
    written = [f"{n // 100:,}".replace(",", thousands) + decimal + f"{n % 100:02}" for n in cents]
    parsed = entries(csv("unit_id;distance", *(f"A;{cell}" for cell in written)))
    assert parsed.problems == ()
    assert parsed.frame.column("quantity").to_pylist() == [float(f"{n // 100}.{n % 100:02}") for n in cents]

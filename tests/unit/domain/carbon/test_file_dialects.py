"""CSV as programs write it: delimiters, quotes, line ends, blank lines; and the line of each problem."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.shared.tabular.csv_rows import _CELLS_AT_ONCE
from tests.unit.domain.carbon.files import (
    Case,
    Refused,
    Taken,
    check,
    csv,
    entries,
    entry_file,
    parameters,
    places,
    unit_file,
)

TWO = Taken({"unit_id": ["A", "B"], "name": ["a", "b"]})


def missing(*lines: int) -> Refused:
    return Refused([(line, "name", "missing") for line in lines])


DELIMITERS = (
    unit_file("comma", "unit_id,name\nA,a\nB,b\n", TWO),
    unit_file("semicolon", "unit_id;name\nA;a\nB;b\n", TWO),
    unit_file("tab", "unit_id\tname\nA\ta\nB\tb\n", TWO),
    unit_file("bar", "unit_id|name\nA|a\nB|b\n", TWO),
    unit_file("sep=;", "sep=;\nunit_id;name\nA;a\nB;b\n", TWO),
    unit_file(
        "sep= and blank lines", "\nSEP=;\n\nunit_id;name\nA;a\n;b\n", Refused([(6, "unit_id", "missing")])
    ),
    unit_file("sep= and nothing", "sep=;\n", Refused([(0, "", "empty_file")])),
    unit_file(
        "a delimiter in the other's cells", "unit_id;name\nA;a,x\nB;b,y\n", Taken({"name": ["a,x", "b,y"]})
    ),
)

LINE_ENDS = (
    unit_file("CRLF", csv("unit_id,name", "A,a", "B,b", end="\r\n"), TWO),
    unit_file("all kinds", "unit_id,name\rA,a\r\nB,b\n", TWO),
    unit_file("line separators are no line ends", "unit_id,name\nA,a\u2028b\x0b\nB,\n", missing(3)),
)

BLANKS = (
    unit_file("only blank rows", "unit_id,name\n,\n\n,\n", Refused([(1, "", "no_rows")])),
    unit_file("header only", "unit_id,name\n", Refused([(1, "", "no_rows")])),
    unit_file("header on a later line", "\n;;\n \nunit_id;name\nA;a\nB;\n", missing(6)),
    unit_file("thousands of empty rows behind", "unit_id,name\nA,a\nB,b\n" + ",\n" * 70_000, TWO),
    unit_file(
        "thousands of empty rows between", "unit_id,name\nA,a\n" + ",\n" * 250_000 + "B,\n", missing(250_003)
    ),
    unit_file("trailing empty columns", "unit_id,name,,\nA,a,,\nB,b,,\n", TWO),
)

QUOTES = (
    unit_file("a quote inside", 'unit_id,name\nA,12" pipe\n', Taken({"name": ['12" pipe']})),
    unit_file("a line end", 'unit_id,name\nA,"a\nb"\nB,\n', missing(4)),
    unit_file("line ends of all kinds", 'unit_id,name\nA,"a\r\nb\rc\n\nd"\n\nB,\n', missing(8)),
    unit_file("a line end at a cell's edge", 'unit_id,name,parent_id\n"A","a\r","\nB"\nB,,\n', missing(5)),
    unit_file("a line end in the header", '"unit\nid","name"\nA,a\nB,\n', missing(4)),
    unit_file("not closed", 'unit_id,name\nA,a\nB,"b\nC,c\n', Refused([(3, "", "quotes")])),
    unit_file(
        "not closed before a million characters",
        'unit_id,name\nA,a\nB,"' + "b\n" * 600_000,
        Refused([(3, "", "quotes")], ["million"]),
    ),
    unit_file(
        "a quote after a closed one", 'unit_id,name\nA,"a\nb"\nB,"b" c\n', Refused([(4, "", "quotes")])
    ),
    unit_file("closed by the next one", 'unit_id,name\nA,"a\nB,"b"\n', Refused([(2, "", "quotes")])),
)

HEADERS = (
    unit_file("in other spellings", " Unit ID ;NAME\nA;a\nB;b\n", TWO),
    unit_file(
        "a column too much", "unit_id,name,colour\nA,a,red\n", Refused([(1, "colour", "unknown_column")])
    ),
    unit_file(
        "misspelt",
        "unit_id,name,parrent_id\nA,a,\n",
        Refused([(1, "parrent_id", "unknown_column")], ["do you mean parent_id?"]),
    ),
    unit_file("doubled", "unit_id,name,Name\nA,a,b\n", Refused([(1, "name", "header")])),
    unit_file(
        "without a name in the middle", "unit_id,,name\nA,,a\n", Refused([(1, "", "header")], ["column 2"])
    ),
    unit_file("none, but data", "A,a\nB,b\n", Refused([(1, "", "header")], ["starts with its header"])),
    unit_file(
        "very long", "unit_id,name," + "x" * 5_000 + "\nA,a,\n", Refused([(1, "x" * 59 + "…", "header")])
    ),
    unit_file(
        "a thousand columns", ",".join(f"c{n}" for n in range(1000)) + "\n1\n", Refused([(1, "", "header")])
    ),
    unit_file(
        "a title above",
        "Units of 2025;;\nunit_id;name;\nA;a;\n",
        Refused([(1, "", "header")], ["'Units of 2025' has no column"]),
    ),
    unit_file(
        "all misspelt",
        "unit_ld,nome\nA,a\n",
        Refused(
            [
                (1, "unit_id", "missing_column"),
                (1, "name", "missing_column"),
                (1, "unit_ld", "unknown_column"),
                (1, "nome", "unknown_column"),
            ]
        ),
    ),
)

WIDTHS = (
    unit_file(
        "too short", "unit_id,name\nA,a\nB\nA2,\n", Refused([(3, "", "columns"), (4, "name", "missing")])
    ),
    unit_file(
        "too long", "unit_id,name\n\nA,a,x\nB,b\n", Refused([(3, "", "columns")], ["comma needs quotes"])
    ),
    unit_file("all of them", "unit_id,name\nA\nB\n", Refused([(2, "", "columns"), (3, "", "columns")])),
    unit_file("another delimiter than the header", "unit_id,name\nA;a\n", Refused([(2, "", "columns")])),
    entry_file(
        "a decimal comma in a file of commas",
        "unit_id,distance\nA,1\nA,1,5\n\nA,x\n",
        Refused([(3, "", "columns"), (5, "distance", "not_a_number")]),
    ),
)


@parameters(*DELIMITERS, *LINE_ENDS, *BLANKS)
def test_every_dialect_is_read_and_lines_are_counted_as_an_editor_does(case: Case) -> None:
    check(case)


@parameters(*QUOTES)
def test_quotes_hold_anything_and_a_lonely_one_is_found_where_its_row_begins(case: Case) -> None:
    check(case)


@parameters(*HEADERS, *WIDTHS)
def test_a_file_of_other_columns_is_refused_with_a_hint(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("around", [-1, 0, 1])
def test_lines_stay_right_where_pieces_of_a_file_meet(around: int) -> None:
    at_once = _CELLS_AT_ONCE // 2
    good = ["A,1"] * (at_once + around - 2)
    strange = ["", '"A","2\n"', ",", "A,x", "A,1,1", "", "A,y"]
    parsed = entries(csv("unit_id,distance", *good, *strange))
    first = len(good) + 2
    assert places(parsed.problems) == [
        (first + 4, "distance", "not_a_number"),
        (first + 5, "", "columns"),
        (first + 7, "distance", "not_a_number"),
    ]
    assert parsed.rows == len(good) + 4
    assert parsed.bad_rows == 3
    assert parsed.frame.num_rows == len(good) + 1
    assert parsed.frame.column("line").to_pylist()[-1] == first + 1


VALUE = st.text(st.sampled_from([*"aé ,;|\t'=\n\r", '"', "\u2028"]), max_size=6)
ROW = st.tuples(st.booleans(), VALUE) | st.sampled_from(["", ",", " , "])


@given(st.lists(ROW, max_size=30), st.sampled_from(["\n", "\r\n", "\r"]))
def test_wherever_a_bad_row_stands_its_line_is_reported(rows: list[tuple[bool, str] | str], end: str) -> None:
    """A row is a good or a bad one with any note, or a blank: the line is counted here as an editor would."""
    text, bad = "unit_id,distance,note" + end, []
    for row in rows:
        if isinstance(row, str):
            text += row + end
            continue
        good, note = row
        if not good:
            bad.append(len(re.split("\r\n|\r|\n", text)))
        quoted = note.replace('"', '""')
        text += f'A,{1 if good else "x"},"n{quoted}."{end}'
    if not any(isinstance(row, tuple) for row in rows):
        return
    parsed = entries(text.encode())
    assert places(parsed.problems) == [(line, "distance", "not_a_number") for line in bad]
    assert parsed.frame.column("note").to_pylist() == [
        f"n{row[1]}." for row in rows if isinstance(row, tuple) and row[0]
    ]

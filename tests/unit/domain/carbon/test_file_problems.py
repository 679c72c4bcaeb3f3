"""A refused file: nothing is taken, the first problems are reported in their order, all are counted."""

from __future__ import annotations

import pytest

from domain.shared.tabular.problems import SHOWN, FileRefused
from domain.shared.tabular.sheet import Parsed
from tests.unit.domain.carbon.files import csv, entries, factors, of_type, places, units


def refusal(parsed: Parsed, *, accept_valid: bool = False) -> FileRefused:
    with pytest.raises(FileRefused) as refused:
        parsed.or_refused("it.csv", accept_valid=accept_valid)
    return refused.value


def test_one_bad_row_refuses_the_whole_file() -> None:
    error = refusal(entries(csv("unit_id,distance", "A,1", "A,x", "A,3")))
    assert str(error) == (
        "it.csv: line 3, column distance: 'x' is no number (the decimal mark here is a point)"
    )
    assert error.remedy
    assert not hasattr(error, "frame")


def test_the_good_rows_are_taken_if_that_is_asked_for_and_no_others() -> None:
    rows = ["A,1", "C,2", "A,3", "A", "", "A,4,5", ",6", "B,7", "A,-8", "Zürich,9"]
    parsed = entries(csv("unit_id,distance", *rows)).or_refused("it.csv", accept_valid=True)
    assert parsed.frame.column("quantity").to_pylist() == [1, 3, 7, 9]
    assert parsed.frame.column("line").to_pylist() == [2, 4, 9, 11]
    assert parsed.frame.column("entry_id").to_pylist() == ["line 2", "line 4", "line 9", "line 11"]
    assert (parsed.rows, parsed.bad_rows, parsed.problem_count) == (9, 5, 5)
    assert places(parsed.problems) == [
        (3, "unit_id", "unknown_unit_id"),
        (5, "", "columns"),
        (7, "", "columns"),
        (8, "unit_id", "missing"),
        (10, "distance", "negative"),
    ]


def test_a_file_without_a_good_row_is_refused_in_any_case() -> None:
    error = refusal(entries(csv("unit_id,distance", "A,x", "A,y")), accept_valid=True)
    assert places(error.problems) == [(2, "distance", "not_a_number"), (3, "distance", "not_a_number")]


def test_a_unit_that_is_left_out_is_no_longer_above_others() -> None:
    parsed = units(csv("unit_id,parent_id,name", "A,,", "B,A,b")).or_refused("it.csv", accept_valid=True)
    assert parsed.frame.column("unit_id").to_pylist() == ["B"]
    assert parsed.warnings == ("line 3: the unit above, 'A', is not in the file: its children become roots",)


@pytest.mark.parametrize("count", [SHOWN - 1, SHOWN, SHOWN + 1, 5_000])
def test_the_first_hundred_by_line_are_reported_and_all_are_counted(count: int) -> None:
    """The columns are looked at one after the other: a later one must not crowd out an earlier line."""
    rows = ["A,1,1,,"] + [f"A,{'x' if n % 2 else 1},{1 if n % 2 else 'y'},," for n in range(count)]
    error = refusal(entries(csv("unit_id,distance,passengers,unit,note", *rows)))
    assert error.total == count
    assert places(error.problems) == [
        (n + 3, "distance" if n % 2 else "passengers", "not_a_number") for n in range(min(count, SHOWN))
    ]
    assert ("more)" in str(error)) == (count > 1)


def test_rows_of_another_width_are_reported_among_the_others() -> None:
    rows = [f"A,{n}" if n % 2 else "A,x" if n % 4 else "A" for n in range(1_000)]
    error = refusal(entries(csv("unit_id,distance", *rows)))
    assert error.total == 500
    assert [p.line for p in error.problems] == [2 * n + 2 for n in range(SHOWN)]
    assert {p.code for p in error.problems} == {"columns", "not_a_number"}


def test_what_a_cell_holds_is_shown_so_that_it_does_no_harm() -> None:
    cells = ["\x1b[2J" + "x" * 500, '"two\nlines"', "\u202eabc", "{value}"]
    error = refusal(entries(csv("unit_id,distance", *(f"{cell},1" for cell in cells))))
    assert "\n".join(map(str, error.problems)).replace("\n", "").isprintable()
    assert all(len(problem.value) < 80 for problem in error.problems)
    assert error.problems[-1].value == "{value}"


@pytest.mark.parametrize(
    ("kind", "header", "row"),
    [
        ("train", "unit_id,distance,unit", "A,1,furlong{n}"),
        ("train", "unit_id,distance", "C{n},1"),
        ("train", "unit_id,distance", "A,x{n}"),
        ("road", "unit_id,distance,vehicle", "A,1,tank{n}"),
        ("train", "entry_id,unit_id,distance", "{h},A,{n}"),
        ("train", "year,unit_id,distance", "{n},A,1"),
    ],
)
def test_many_different_mistakes_cost_no_more_than_many_alike(kind: str, header: str, row: str) -> None:
    """Were each looked for in all rows, this would take an hour."""
    rows = [row.format(n=n + 3_000, h=n // 2) for n in range(40_000)]
    error = refusal(of_type(kind)(csv(header, *rows)))
    assert error.total == 40_000
    assert [p.line for p in error.problems] == list(range(2, SHOWN + 2))


def test_many_different_mistakes_of_factors_cost_no_more_than_many_alike() -> None:
    rows = [f"refrigerant,e{n},{{broken{n},{n},kg/x{n}" for n in range(50_000)]
    error = refusal(factors(csv("data_entry_type,emission_type,classification,value,unit", *rows)))
    assert error.total == 150_000
    assert places(error.problems)[:3] == [
        (2, "classification", "classification"),
        (2, "emission_type", "unknown_emission_type"),
        (2, "unit", "unknown_unit"),
    ]
    assert "'{broken33' is no JSON object" in str(error.problems[99])


def test_every_problem_can_be_written_as_json() -> None:
    (problem,) = refusal(entries(csv("unit_id,distance", "A,x"))).problems
    assert problem.as_json() == {
        "line": 2,
        "column": "distance",
        "value": "x",
        "code": "not_a_number",
        "reason": "is no number (the decimal mark here is a point)",
    }

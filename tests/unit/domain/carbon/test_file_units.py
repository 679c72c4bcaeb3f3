"""Files of organisational units: a tree, whatever the file says."""

from __future__ import annotations

from tests.unit.domain.carbon.files import Case, Refused, Taken, check, csv, parameters, unit_file, units

CASES = (
    unit_file(
        "a tree",
        csv("unit_id,parent_id,name", "A,,all", "B,A,b", "C,B,c"),
        Taken(
            {"unit_id": ["A", "B", "C"], "parent_id": [None, "A", "B"], "year": [2025] * 3, "line": [2, 3, 4]}
        ),
    ),
    unit_file("no column of parents", csv("unit_id,name", "A,a"), Taken({"parent_id": [None]})),
    unit_file(
        "a circle of three, and one below it",
        csv("unit_id,parent_id,name", "A,C,a", "B,A,b", "C,B,c", "D,C,d", "E,,e"),
        Refused([(2, "parent_id", "circle"), (3, "parent_id", "circle"), (4, "parent_id", "circle")]),
    ),
    unit_file(
        "unknown parents, each reported once",
        csv("unit_id,parent_id,name", "A,X,a", "B,X,b", "C,Y,c", "D,A,d"),
        Taken(
            {"unit_id": ["A", "B", "C", "D"]},
            ["line 2: the unit above, 'X', is not in the file", "line 4: the unit above, 'Y'"],
        ),
    ),
    unit_file(
        "doubled, the same",
        csv("unit_id,parent_id,name", "A,,a", "B,A,b", "B,A,b"),
        Taken({"unit_id": ["A", "B"]}, ["line 4 is the same as line 3"]),
    ),
    unit_file(
        "doubled, with another name",
        csv("unit_id,parent_id,name", "A,,a", "B,A,b", "B,A,c"),
        Refused(
            [(3, "unit_id", "duplicate"), (4, "unit_id", "duplicate")],
            ["also on line 4", "also on line 3"],
        ),
    ),
    unit_file(
        "nothing where something is needed",
        csv("unit_id,parent_id,name", ",,a", "B,,", ",,c"),
        Refused([(2, "unit_id", "missing"), (3, "name", "missing"), (4, "unit_id", "missing")]),
    ),
    unit_file(
        "names that a spreadsheet would run",
        csv("unit_id,name", "=A,a", "B,=b", "C,#NAME?", "D,d=e"),
        Refused([(2, "unit_id", "formula"), (3, "name", "formula"), (4, "name", "formula")]),
    ),
    unit_file(
        "invisible characters",
        csv("unit_id,parent_id,name", "A\u200b,,a", "B,A\u200b,b"),
        Refused([(2, "unit_id", "control_character"), (3, "parent_id", "control_character")], ["u200b"]),
    ),
    unit_file(
        "another year", csv("year,unit_id,name", "2025,A,a", "2024,A,a"), Refused([(3, "year", "other_year")])
    ),
)


@parameters(*CASES)
def test_units_are_a_tree(case: Case) -> None:
    check(case)


def test_each_year_has_its_own_tree() -> None:
    rows = ["2024,A,,a", "2024,B,A,b", "2025,B,,b", "2025,A,B,a"]
    parsed = units(csv("year,unit_id,parent_id,name", *rows), year=None)
    assert (parsed.problems, parsed.warnings) == ((), ())
    assert parsed.years == [2024, 2025]


def test_a_long_chain_is_no_circle_and_takes_no_recursion() -> None:
    rows = [f"u{n},u{n + 1},n" for n in range(20_000)]
    assert units(csv("unit_id,parent_id,name", *rows, "u20000,,top")).problem_count == 0
    circular = units(csv("unit_id,parent_id,name", *rows, "u20000,u5,top"))
    assert circular.problem_count == 20_000 - 5 + 1

"""Parquet files: typed columns are read as what they say, and damage is reported as damage."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import date
from decimal import Decimal

import pyarrow as pa

from domain.shared.tabular.parquet_rows import MOST_ROWS
from domain.shared.tabular.problems import FileRefused
from tests.unit.domain.carbon.files import (
    Case,
    Refused,
    Taken,
    check,
    entries,
    entry_file,
    factor_file,
    of_type,
    parameters,
    parquet,
    parquet_of,
    places,
    unit_file,
    units,
)

NAN = float("nan")


def train(**columns: object) -> bytes:
    count = len(next(iter(columns.values())))  # type: ignore[arg-type]
    return parquet(**{"unit_id": ["A"] * count, "distance": list(range(1, count + 1)), **columns})


def untyped(kind: pa.DataType, values: list[object]) -> bytes:
    return train(note=pa.array(values, kind))


READ = (
    entry_file("whole numbers", train(distance=pa.array([1, 2], pa.int16())), Taken({"quantity": [1, 2]})),
    entry_file("floats", train(distance=[0.1, 1e-7, 1.5e9]), Taken({"quantity": [0.1, 1e-7, 1.5e9]})),
    entry_file("single floats", train(distance=pa.array([0.1], pa.float32())), Taken({"quantity": [0.1]})),
    entry_file("decimals", train(distance=pa.array([Decimal("1.500")])), Taken({"quantity": [1.5]})),
    entry_file(
        "floats are no commas, whatever was said beside",
        train(distance=[1.234, 12.5]),
        Taken({"quantity": [1.234, 12.5]}),
        of_type("train", mark="comma"),
    ),
    entry_file(
        "floats beside texts with commas",
        train(distance=[1.234, 12.5], kg_co2eq=["0,5", "1,234"]),
        Taken({"quantity": [1.234, 12.5], "kg_co2eq": [0.5, 1.234]}),
    ),
    entry_file(
        "numbers as texts", train(distance=["1.5", None], kg_co2eq=[None, "2"]), Taken({"quantity": [1.5, 0]})
    ),
    entry_file("booleans", train(round_trip=[True, False, None]), Taken({"quantity": [2, 2, 3]})),
    entry_file("names as numbers", train(entry_id=[7, 8]), Taken({"entry_id": ["7", "8"]})),
    entry_file("years as floats", train(year=[2025.0, None]), Refused([(2, "year", "year")])),
    entry_file(
        "words of a dictionary",
        parquet(unit_id=pa.array(["A", "B"]).dictionary_encode(), distance=[1, 2]),
        Taken({"unit_id": ["A", "B"]}),
    ),
    entry_file("bytes that are text", untyped(pa.binary(), ["ä".encode()]), Taken({"note": ["ä"]})),
    entry_file("dates", untyped(pa.date32(), [date(2025, 3, 1)]), Taken({"note": ["2025-03-01"]})),
    unit_file(
        "empty rows",
        parquet(unit_id=["A", None, "", "B"], name=["a", None, " ", "b"]),
        Taken({"unit_id": ["A", "B"], "line": [1, 4]}),
    ),
    unit_file(
        "headers in other spellings",
        parquet_of(pa.table({"Unit ID": ["A"], "NAME ": ["a"]})),
        Taken({"unit_id": ["A"]}),
    ),
    factor_file(
        "factors",
        parquet(data_entry_type=["home_office"], value=[0.125], unit=["kg/h"]),
        Taken({"value": [0.125], "emission_type": ["home_office"]}),
    ),
)

REFUSED = (
    entry_file(
        "no numbers",
        train(distance=[NAN, float("inf"), -1.0, 1e300, None]),
        Refused(
            [
                (1, "distance", "not_a_number"),
                (2, "distance", "not_a_number"),
                (3, "distance", "negative"),
                (4, "distance", "too_large"),
                (5, "distance", "missing"),
            ]
        ),
    ),
    entry_file(
        "dates for numbers", train(distance=[date(2025, 1, 1)]), Refused([(1, "distance", "not_a_number")])
    ),
    entry_file("lists", train(note=[["a"], ["b"]]), Refused([(0, "note", "not_a_table")], ["list"])),
    entry_file(
        "bytes that are none", untyped(pa.binary(), [b"\xff\xfe"]), Refused([(0, "note", "not_a_table")])
    ),
    entry_file("a NUL in a text", train(note=["a\0b"]), Refused([(1, "note", "control_character")], ["x00"])),
    entry_file("a formula", train(note=["=1"]), Refused([(1, "note", "formula")])),
    entry_file("1,234 in texts", train(distance=["1,234"]), Refused([(1, "distance", "ambiguous_number")])),
    unit_file(
        "no rows",
        parquet(unit_id=pa.array([], pa.string()), name=pa.array([], pa.string())),
        Refused([(0, "", "no_rows")]),
    ),
    unit_file("no columns", parquet_of(pa.table({})), Refused([(0, "", "header")])),
    unit_file(
        "a column without a name",
        parquet_of(pa.table({"unit_id": ["A"], "name": ["a"], "": ["x"]})),
        Refused([(0, "", "header")]),
    ),
    unit_file(
        "a column twice",
        parquet_of(pa.table([["A"], ["a"], ["b"]], names=["unit_id", "name", "name"])),
        Refused([(0, "name", "header")]),
    ),
    unit_file("its first and last bytes", b"PAR1PAR1", Refused([(0, "", "not_a_table")])),
    unit_file("cut off", parquet(unit_id=["A"], name=["a"])[:-10], Refused([(0, "", "not_a_table")])),
    unit_file(
        "encrypted, or so it says", b"PAR1" + b"\xff" * 100 + b"PARE", Refused([(0, "", "not_a_table")])
    ),
    unit_file(
        "a billion rows",
        parquet_of(pa.table({"unit_id": pa.repeat(pa.scalar("A"), MOST_ROWS + 1)})),
        Refused([(0, "", "too_many_rows")]),
    ),
)


@parameters(*READ, *REFUSED)
def test_typed_columns_are_checked_as_written_ones(case: Case) -> None:
    check(case)


def test_rows_are_counted_from_one() -> None:
    parsed = entries(train(distance=["1", "x", "3"]))
    assert places(parsed.problems) == [(2, "distance", "not_a_number")]
    assert parsed.frame.column("line").to_pylist() == [1, 3]


def test_whatever_byte_is_corrupt_the_file_is_refused_or_read() -> None:
    """Never another error: a broken file is corrected by its sender."""
    content = parquet(unit_id=[f"u{n}" for n in range(50)], name=["näme"] * 50)
    chance = random.Random(7)
    refusals = 0
    for _ in range(400):
        corrupt = bytearray(content)
        for _ in range(chance.randint(1, 4)):
            corrupt[chance.randrange(4, len(corrupt))] = chance.randrange(256)
        with suppress(FileRefused):
            units(bytes(corrupt))
            continue
        refusals += 1
    assert refusals > 100

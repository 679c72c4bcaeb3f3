"""The formula as DuckDB runs it over the lake's files: the same rows as in memory, and sums that notice
edits."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from domain.carbon.emissions import ImplausibleMass, calculate, calculated
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS
from domain.shared.compute import query
from resources.lake.client import Lake
from resources.lake.partition_writer import WrittenPartition
from tests.unit.domain.carbon.test_calculation_edges import KEYED, YEAR, entries, factors, keyed
from tests.unit.resources.lake.frames import on_files

PARTITION = f"keyed|{YEAR}"
FACTORS = factors(*keyed(("x any 1", 1.0), ("y any 1", 0.5)), *keyed(("x any 1", 0.25), emission="upstream"))
X, Y, Z = (f'{{"a":"{a}","b":"any","c":1}}' for a in "xyz")


def complete(rows: pa.Table) -> pa.Table:
    """Entries with all columns of their table."""
    texts = dict.fromkeys(("entry_id", "institution", "source", "details"), "-")
    made = [{"data_entry_type": "keyed", **texts, **row} for row in rows.to_pylist()]
    return pa.Table.from_pylist(made, schema=DATA_ENTRIES.schema)


def write(lake: Lake, rows: pa.Table, known: pa.Table = FACTORS) -> WrittenPartition:
    lake.replace(DATA_ENTRIES.name, PARTITION, complete(rows))
    opened = lake.partition_writer(EMISSIONS.name, PARTITION, source=DATA_ENTRIES.name, name="entries")
    with opened as writer:
        return calculate(KEYED, YEAR, known, writer)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return on_files(tmp_path, (DATA_ENTRIES, EMISSIONS))


def many(count: int) -> pa.Table:
    luck = np.random.default_rng(count)
    rows: list[dict[str, Any]] = [
        {
            "unit_id": f"U{luck.integers(0, 5)}",
            "quantity": float(luck.integers(-9, 9)) + float(luck.choice([0, 0.5, 1e-7, 0.4999999])) / 1e6,
            "unit": str(luck.choice(["kg", "g"])),
            "classification": (X, Y, Z)[luck.integers(0, 3)],
            "kg_co2eq": 1.5e-6 if luck.random() < 0.2 else None,
        }
        for _ in range(count)
    ]
    return entries(*rows)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    names = sorted(table.column_names)
    return sorted(
        zip(*(table.column(name).to_pylist() for name in names), strict=True),
        key=str,
    )


@pytest.mark.parametrize("count", [1, 2_000])
def test_calculate__over_the_lake__writes_the_rows_of_the_calculation_in_memory(
    lake: Lake, count: int
) -> None:
    rows = many(count)
    lake.put(EMISSIONS.name, [written := write(lake, rows)])
    wanted = calculated(KEYED, YEAR, rows, FACTORS)
    stored = lake.query(f"SELECT * FROM {EMISSIONS.name}")
    assert rows_of(stored) == rows_of(wanted.frame)
    assert rows_of(written.sums) == rows_of(wanted.sums)
    assert lake.version(EMISSIONS.name, PARTITION) == written.version


@pytest.mark.parametrize("quantity", [1e300, -1e300, math.inf, math.nan])
def test_calculate__implausible_mass__names_the_entry_and_leaves_no_file(
    lake: Lake, tmp_path: Path, quantity: float
) -> None:
    with pytest.raises(ImplausibleMass) as caught:
        write(lake, entries({"classification": X}, {"classification": X, "quantity": quantity}))
    assert caught.value.entry_key == 1
    assert list((tmp_path / "lake/warehouse/carbon/data_entry_emissions").rglob("*.parquet")) == []


def version_of(frame: pa.Table) -> list[tuple[Any, ...]]:
    return rows_of(query(EMISSIONS.sums, {"results": frame}))


def swap(name: str) -> Callable[[pa.Table], pa.Table]:
    """Exchange a column's values of two rows that differ in it."""

    def edit(frame: pa.Table) -> pa.Table:
        values = frame.column(name).to_pylist()
        other = next(n for n, value in enumerate(values) if value != values[0])
        values[0], values[other] = values[other], values[0]
        return put_column(frame, name, values)

    return edit


def put_column(frame: pa.Table, name: str, values: list[Any]) -> pa.Table:
    place = frame.schema.get_field_index(name)
    return frame.set_column(
        place, frame.schema.field(place), pa.array(values, frame.schema.field(place).type)
    )


def add(name: str, amount: int) -> Callable[[pa.Table], pa.Table]:
    def edit(frame: pa.Table) -> pa.Table:
        values = frame.column(name).to_pylist()
        place = next(n for n, value in enumerate(values) if value is not None)
        values[place] += amount
        return put_column(frame, name, values)

    return edit


EDITS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "mass swapped": swap("mg_co2e"),
    "unit swapped": swap("unit_id"),
    "factor swapped": swap("factor_id"),
    "status swapped": swap("status"),
    "key swapped": swap("entry_key"),
    "mass one more": add("mg_co2e", 1),
    "mass 2^30 more": add("mg_co2e", 2**30),
    "key one more": add("entry_key", 1),
    "version one more": add("factor_version", 1),
    "row lost": lambda frame: frame.slice(1),
    "row twice": lambda frame: pa.concat_tables([frame, frame.slice(0, 1)]),
    "mass emptied": lambda frame: put_column(
        frame, "mg_co2e", [None, *frame.column("mg_co2e").to_pylist()[1:]]
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_control_sums__any_edit__are_different(edit: str) -> None:
    rows = entries(
        {"classification": X, "quantity": 3.0, "unit_id": "A"},
        {"classification": Y, "quantity": 4.0, "unit_id": "B"},
        {"classification": Z, "quantity": 5.0, "unit_id": "A", "kg_co2eq": 7.0},
    )
    frame = calculated(KEYED, YEAR, rows, FACTORS).frame
    assert version_of(EDITS[edit](frame)) != version_of(frame)


def test_control_sums__order_of_rows__does_not_matter() -> None:
    frame = calculated(KEYED, YEAR, many(500), FACTORS).frame
    order = np.random.default_rng(1).permutation(frame.num_rows)
    assert version_of(frame.take(pa.array(order))) == version_of(frame)

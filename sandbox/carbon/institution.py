"""A sample university as the files it would upload: units, factors and data entries of some years."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from sandbox.carbon.entries import entries
from sandbox.carbon.factors import factors
from sandbox.carbon.tree import Unit, units
from sandbox.carbon.types import types

SEED = 20_250_101
YEARS = (2023, 2024, 2025)
REVISED = {"plane": 1.05, "electricity": 0.97}
"""What a newer edition of the factors makes of these types' values."""


@dataclass(frozen=True)
class Written:
    path: Path
    kind: Literal["units", "factors", "data"]
    year: int
    rows: int
    data_entry_type: str = ""


def write(folder: Path, scale: float = 1.0, seed: int = SEED, years: Sequence[int] = YEARS) -> list[Written]:
    """Write the files, in the order in which they can be uploaded. The same arguments write the same bytes.

    At `scale` 1 there are about 200,000 entries in three years; the tree and the factors do not scale.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return [made for year in years for made in _year(folder, year, scale, seed)]


def write_revision(folder: Path, year: int) -> Written:
    """A year's factors in a newer edition: the same, but for the types that are `REVISED`."""
    rows = factors(year)
    times = pa.array([REVISED.get(name, 1.0) for name in rows.column("data_entry_type").to_pylist()])
    revised = pc.round(pc.multiply(rows.column("value"), times), 6)
    rows = rows.set_column(rows.schema.get_field_index("value"), "value", revised)
    return _file(folder / f"factors-{year}-revised.csv", "factors", year, rows)


def _year(folder: Path, year: int, scale: float, seed: int) -> Iterator[Written]:
    tree = units(year, seed)
    yield _file(folder / f"units-{year}.csv", "units", year, _unit_rows(year, tree))
    yield _file(folder / f"factors-{year}.csv", "factors", year, factors(year))
    names = [unit.unit_id for unit in tree]
    for name, kind in types().items():
        rows = entries(name, kind, year, max(round(kind.rows * scale), 1), names, seed)
        yield _file(folder / f"{name}-{year}.csv", "data", year, rows, name)


def _unit_rows(year: int, tree: Sequence[Unit]) -> pa.Table:
    rows = [
        {"year": year, "unit_id": u.unit_id, "parent_id": u.parent_id or None, "name": u.name} for u in tree
    ]
    return pa.Table.from_pylist(rows)


def _file(
    path: Path, kind: Literal["units", "factors", "data"], year: int, rows: pa.Table, name: str = ""
) -> Written:
    csv.write_csv(rows, path)
    return Written(path, kind, year, rows.num_rows, name)

"""A file of organisational units: one row per unit, each naming the unit above it."""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from domain.carbon.tables import UNITS
from domain.shared.tabular.sheet import Parsed, Sheet

COLUMNS = {"year", "unit_id", "parent_id", "name"}


def read_units(source: BinaryIO, *, year: int | None = None) -> Parsed:
    """Units of one or more years. A missing parent is reported once; its children become roots."""
    sheet = Sheet.of(source, COLUMNS)
    sheet.check_header(["unit_id", "name"], COLUMNS)
    columns = {
        "year": sheet.years(year),
        "unit_id": sheet.words("unit_id", required=True),
        "parent_id": sheet.words("parent_id"),
        "name": sheet.words("name", required=True),
    }
    sheet.merge(["year", "unit_id"], ["parent_id", "name"], columns, "unit_id", "this unit")
    _no_circles(sheet, columns)
    parsed = sheet.finish(columns)
    parents, unknown = _above(parsed.frame)
    warnings = [
        f"line {line}: the unit above, {name!r}, is not in the file: its children become roots"
        for name, line in unknown.items()
    ]
    frame = parsed.frame.set_column(2, "parent_id", parents)
    return replace(parsed, frame=frame, warnings=(*parsed.warnings, *warnings))


def no_units() -> pa.Table:
    """The rows of an institution that has none."""
    schema = pa.schema([UNITS.schema.field(name) for name in ("year", "unit_id", "parent_id", "name")])
    return schema.empty_table()


def _above(frame: pa.Table) -> tuple[pa.Array, dict[str, int]]:
    """Of each row the unit above, and those that are not in the file with the first line that names each.

    Such a parent is dropped: it could be a unit of another institution, and two such files could be
    parents of each other.
    """
    years, units, parents, lines = (
        frame.column(n).to_pylist() for n in ("year", "unit_id", "parent_id", "line")
    )
    known = set(zip(years, units, strict=True))
    found: dict[str, int] = {}
    above: list[str | None] = []
    for year, parent, line in zip(years, parents, lines, strict=True):
        if parent and (year, parent) not in known:
            found.setdefault(parent, line)
        above.append(parent if parent and (year, parent) in known else None)
    return pa.array(above, pa.string()), found


def _no_circles(sheet: Sheet, columns: dict[str, pa.Array]) -> None:
    """A unit that is above itself would never be summed up."""
    years, units, parents = (columns[n].to_pylist() for n in ("year", "unit_id", "parent_id"))
    above = {(y, u): (y, p) for y, u, p in zip(years, units, parents, strict=True) if p}
    ends: dict[tuple[int, str], bool] = {}
    for start in above:
        path: list[tuple[int, str]] = []
        on_path: set[tuple[int, str]] = set()
        node = start
        while node in above and node not in ends and node not in on_path:
            path.append(node)
            on_path.add(node)
            node = above[node]
        circular = node in on_path
        loop = set(path[path.index(node) :]) if circular else set()
        for passed in path:
            ends[passed] = passed in loop
    where = np.array([ends.get((y, u), False) for y, u in zip(years, units, strict=True)], dtype=bool)
    sheet.flag(where, "parent_id", "circle", "makes the unit its own parent")

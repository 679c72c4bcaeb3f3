"""From a file to a frame of texts: one column per header, and the line of each row.

CSV in any common dialect, or Parquet. Nothing is interpreted here but the header and the quotes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from domain.shared.tabular.problems import FileRefused, Problem, refused
from domain.shared.tabular.text import is_parquet


@dataclass(frozen=True)
class Cells:
    """A file's rows. `texts` has only strings, trimmed, "" where nothing is; `lines` counts from 1.

    What is no row of the table, having more cells or less, is counted apart from them.
    """

    texts: pa.Table
    lines: pa.Array
    header: int = 0
    """Line of the header; Parquet has none."""
    delimiter: str = ""
    numeric: frozenset[str] = frozenset()
    """Columns that are numbers by their type: their decimal mark is always a point."""
    misfits: tuple[Problem, ...] = ()
    misfit_count: int = 0

    @property
    def columns(self) -> list[str]:
        names: list[str] = self.texts.column_names
        return names


def read_cells(source: BinaryIO, known: Collection[str]) -> Cells:
    """The cells of a CSV or Parquet file. `known` headers decide delimiter and header."""
    from domain.shared.tabular.csv_rows import read_csv
    from domain.shared.tabular.parquet_rows import read_parquet

    cells = (read_parquet if is_parquet(source) else read_csv)(source, known)
    if not len(cells.lines):
        if cells.misfits:
            raise FileRefused("", cells.misfits, cells.misfit_count)
        raise refused("no_rows", "has a header and no rows", line=cells.header)
    return cells


def without_empty_rows(columns: Sequence[pa.Array], lines: pa.Array) -> tuple[list[pa.Array], pa.Array]:
    """Spreadsheets leave rows of nothing, in the middle and by thousands at the end."""
    empty = pa.scalar(True)
    for column in columns:
        empty = pc.and_(pc.equal(column, ""), empty)
        if not pc.any(empty).as_py():
            return list(columns), lines
    full = pc.invert(empty)
    return [column.filter(full) for column in columns], lines.filter(full)


def tidy(column: pa.Array) -> pa.Array:
    """Without the spaces around, and every letter in one spelling: an ü can be one character or two."""
    trimmed = pc.utf8_trim_whitespace(column)
    return trimmed if pc.all(pc.string_is_ascii(trimmed)).as_py() else pc.utf8_normalize(trimmed, "NFC")

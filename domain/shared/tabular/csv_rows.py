"""The rows of a CSV file, whichever program wrote it, and the line on which each starts."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from domain.shared.tabular.header import header_name, header_names
from domain.shared.tabular.problems import SHOWN, FileRefused, Problem, refused, short
from domain.shared.tabular.rows import Cells, tidy, without_empty_rows
from domain.shared.tabular.text import breaks, opened

DELIMITERS = (",", ";", "\t", "|")
_CELLS_AT_ONCE = 200_000
_LONGEST_CELL = 1 << 20
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


def read_csv(source: BinaryIO, known: Collection[str]) -> Cells:
    csv.field_size_limit(_LONGEST_CELL)
    stream = opened(source)
    try:
        return _cells(stream, known)
    finally:
        stream.detach()


def _cells(stream: io.TextIOWrapper, known: Collection[str]) -> Cells:
    text, above = _first_line(stream)
    line = above + 1
    delimiter = max(DELIMITERS, key=lambda d: _fit(text, d, known))
    reader = csv.reader(chain([text], stream), delimiter=delimiter, strict=True)
    try:
        header = next(reader)
    except csv.Error as error:
        raise _unpaired(error, line) from None
    while len(header) > 1 and not header[-1].strip():
        header.pop()  # spreadsheets leave empty columns at the end
    names = header_names(header, line, known)
    rows = _Rows(reader, len(names), delimiter, above)
    parts: list[list[pa.Array]] = [[] for _ in names]
    lines: list[pa.Array] = [pa.array([], pa.int64())]
    for columns, places in rows:
        for part, column in zip(parts, columns, strict=True):
            part.append(column)
        lines.append(places)
    # Popped, so that the parts of a column are freed once it is joined.
    joined = [pa.concat_arrays([pa.array([], pa.string()), *parts.pop(0)]) for _ in names]
    return Cells(
        pa.Table.from_arrays(joined, names=names),
        pa.concat_arrays(lines),
        header=line,
        delimiter=delimiter,
        misfits=tuple(rows.misfits),
        misfit_count=rows.misfit_count,
    )


def _first_line(stream: io.TextIOWrapper) -> tuple[str, int]:
    """Return the line of the header and how many lines are above it: blank ones, and Excel's `sep=;`."""
    above = 0
    while text := stream.readline(_LONGEST_CELL):
        bare = text.strip("\ufeff").rstrip("\r\n")
        hint = len(bare) == len("sep=;") and bare.lower().startswith("sep=")
        if not hint and bare.strip(" \t\xa0,;|"):
            break
        above += 1
    else:
        raise refused("empty_file", "the file has no rows, not even a header")
    if len(text) >= _LONGEST_CELL:
        raise refused("header", "is longer than a million characters: is it a header?", line=above + 1)
    for mark, what in (("<", "a web page"), ("{", "JSON"), ("[", "JSON")):
        if bare.lstrip().startswith(mark):
            raise refused("not_a_table", f"this is {what}, not a table: save it as CSV UTF-8", line=above + 1)
    return text, above


def _fit(text: str, delimiter: str, known: Collection[str]) -> tuple[int, int]:
    """How well a delimiter divides the header: by names that are known, and by all."""
    try:
        names = [header_name(cell) for cell in next(csv.reader([text], delimiter=delimiter), [])]
    except csv.Error:
        return -1, 0
    return sum(name in known for name in names), len(names)


def _unpaired(error: csv.Error, line: int) -> FileRefused:
    what = (
        "is followed by more than a million characters" if "field larger" in str(error) else "has no partner"
    )
    return refused(
        "quotes",
        f"the row that starts here has a cell whose quote {what}: "
        'close it; a quote inside a quoted cell is written twice ("")',
        line=line,
    )


@dataclass
class _Rows:
    """Iterates over a reader's rows, some thousands at once: a column of texts each, and their lines."""

    reader: Any
    width: int
    delimiter: str
    above: int
    misfits: list[Problem] = field(default_factory=list)
    misfit_count: int = 0

    def __iter__(self) -> Iterator[tuple[list[pa.Array], pa.Array]]:
        step = max(_CELLS_AT_ONCE // self.width, 1)
        while True:
            before = self.reader.line_num
            rows: list[list[str]] = []
            try:
                rows.extend(islice(self.reader, step))
            except csv.Error as error:  # what came before it is in `rows`
                raise _unpaired(error, int(self._ends(rows, before)[-1]) + 1) from None
            if not rows:
                return
            lines = pa.array(self._ends(rows, before)[:-1] + 1)
            if set(map(len, rows)) != {self.width}:
                rows, lines = self._fitting(rows, lines)
            columns = [tidy(pa.array(column, pa.string())) for column in zip(*rows, strict=True)]
            if columns:
                yield without_empty_rows(columns, lines)

    def _ends(self, rows: list[list[str]], before: int) -> np.ndarray:
        """The line before the rows, and those on which they end. A quoted cell may go over several."""
        if self.reader.line_num - before == len(rows):
            return np.arange(len(rows) + 1) + self.above + before
        heights = [1 + breaks(",".join(row)) for row in rows]
        return np.cumsum([self.above + before, *heights])

    def _fitting(self, rows: list[list[str]], lines: pa.Array) -> tuple[list[list[str]], pa.Array]:
        """The rows of the header's width. Empty ones and surplus empty cells are spreadsheets' own."""
        kept, where = [], []
        for place, row in enumerate(rows):
            if len(row) > self.width and not any(map(str.strip, row[self.width :])):
                row = row[: self.width]  # noqa: PLW2901
            if len(row) == self.width:
                kept.append(row)
                where.append(place)
            elif any(map(str.strip, row)):
                self._misfit(row, lines[place].as_py())
        return kept, lines.take(pa.array(where, pa.int64()))

    def _misfit(self, row: list[str], line: int) -> None:
        self.misfit_count += 1
        if len(self.misfits) == SHOWN:
            return
        mark = _NAMES.get(self.delimiter, self.delimiter)
        more = f"a cell with a {mark} needs quotes" if len(row) > self.width else "some are missing"
        cells = f"{len(row)} cell" + "s" * (len(row) > 1)
        reason = f"has {cells}, the header has {self.width}: {more}"
        self.misfits.append(Problem(line, "", short(" | ".join(row[: self.width + 1])), "columns", reason))

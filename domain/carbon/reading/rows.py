"""From a file to a frame of texts: one column per header, and the line each row stands on.

CSV in any common dialect, or Parquet. Nothing is interpreted here but the header and the quotes.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.reading.problems import refused, short
from domain.carbon.reading.text import is_parquet, opened

DELIMITERS = (",", ";", "\t", "|")
_CHUNK = 50_000
_LONGEST_CELL = 1 << 20
_MOST_COLUMNS = 500


@dataclass(frozen=True)
class Cells:
    """A file's rows. `texts` has only strings, trimmed, "" where nothing is; `lines` counts from 1."""

    texts: pa.Table
    lines: pa.Array
    delimiter: str = ""

    @property
    def columns(self) -> list[str]:
        names: list[str] = self.texts.column_names
        return names


def read_cells(source: BinaryIO, known: Collection[str]) -> Cells:
    """The cells of a CSV or Parquet file. `known` headers help to tell the delimiter."""
    return _parquet(source) if is_parquet(source) else _csv(source, known)


def header_name(text: str) -> str:
    """`Unit ID ` and `unit_id` are one header."""
    word = unicodedata.normalize("NFC", text).strip().strip("\ufeff").casefold()
    return re.sub(r"[\s.\-/]+", "_", word)


def _csv(source: BinaryIO, known: Collection[str]) -> Cells:
    stream = opened(source)
    try:
        delimiter, names, first = _header(stream, known)
        chunks = list(_chunks(_reader(stream, delimiter), names, first))
    finally:
        stream.detach()
    if not chunks:
        raise refused("no_rows", "has a header and no rows", line=first)
    texts = pa.Table.from_batches([batch for batch, _ in chunks])
    return Cells(_trim(texts), pa.concat_arrays([lines for _, lines in chunks]), delimiter)


def _reader(stream: io.TextIOWrapper, delimiter: str) -> Any:
    csv.field_size_limit(_LONGEST_CELL)
    return csv.reader(stream, delimiter=delimiter, strict=True)


def _header(stream: io.TextIOWrapper, known: Collection[str]) -> tuple[str, list[str], int]:
    """The delimiter under which the header has the most known names, the names, and the header's line."""
    line = 0
    while text := stream.readline(_LONGEST_CELL):
        line += 1
        if text.strip("\ufeff \t\r\n,;|"):
            break
    else:
        raise refused("empty_file", "the file has no rows, not even a header")
    if text.lower().startswith("sep=") and len(text.strip()) == 5:  # Excel's own hint
        text = stream.readline(_LONGEST_CELL)
        line += 1
    if text.lstrip().startswith("<"):
        raise refused("not_a_table", "this is a web page, not a table", line=line)
    best = max(DELIMITERS, key=lambda d: _fit(text, d, known))
    cells = next(iter(csv.reader([text], delimiter=best)), [])
    while cells and not cells[-1].strip():
        cells.pop()  # spreadsheets leave empty columns at the end
    names = [header_name(cell) for cell in cells]
    if len(names) > _MOST_COLUMNS:
        raise refused("header", f"has {len(names)} columns: is its first line a header?", line=line)
    if "" in names:
        raise refused("header", f"column {names.index('') + 1} has no name", line=line)
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise refused("header", "stands twice in the header", line=line, column=twice[0])
    return best, names, line


def _fit(text: str, delimiter: str, known: Collection[str]) -> tuple[int, int]:
    try:
        names = [header_name(cell) for cell in next(iter(csv.reader([text], delimiter=delimiter)), [])]
    except csv.Error:
        return -1, 0
    return sum(name in known for name in names), len(names)


def _chunks(reader: Any, names: list[str], header_line: int) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    width = len(names)
    while True:
        before = reader.line_num
        rows, lines = _some_rows(reader, header_line)
        if not rows and reader.line_num == before:
            return
        if set(map(len, rows)) - {width}:
            rows, lines = _fitted(rows, lines, width)
        if rows:
            columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, names=names), pa.array(lines, pa.int64())


def _some_rows(reader: Any, header_line: int) -> tuple[list[list[str]], list[int]]:
    """The next rows and the lines they begin on."""
    began = reader.line_num
    try:
        rows = list(islice(reader, _CHUNK))
    except csv.Error as error:
        line = header_line + reader.line_num
        if "field larger" in str(error):
            raise refused(
                "quotes", "a cell of more than a million characters: a quote is not closed", line=line
            ) from None
        raise refused("quotes", f"quotes are not paired: {error}", line=line) from None
    except UnicodeDecodeError:
        raise refused(
            "encoding", "ends in the middle of a character", line=header_line + reader.line_num
        ) from None
    first = header_line + began + 1
    if reader.line_num - began == len(rows):
        return rows, list(range(first, first + len(rows)))
    lines = []
    for row in rows:
        lines.append(first)
        first += 1 + sum(cell.count("\n") or cell.count("\r") for cell in row)
    return rows, lines


def _fitted(rows: list[list[str]], lines: list[int], width: int) -> tuple[list[list[str]], list[int]]:
    """Without empty lines; surplus empty cells at the end are spreadsheets' own."""
    kept, where = [], []
    for row, line in zip(rows, lines, strict=True):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) > width and not any(cell.strip() for cell in row[width:]):
            row = row[:width]  # noqa: PLW2901
        if len(row) != width:
            raise refused(
                "columns",
                f"has {len(row)} cells, the header has {width}: a cell that holds a delimiter needs quotes",
                line=line,
                value=short(" | ".join(row)),
            )
        kept.append(row)
        where.append(line)
    return kept, where


def _trim(texts: pa.Table) -> pa.Table:
    columns = [pc.utf8_trim_whitespace(c) for c in texts.columns]
    frame = pa.Table.from_arrays(columns, names=texts.column_names)
    empty = None
    for column in columns:
        blank = pc.equal(column, "")
        empty = blank if empty is None else pc.and_(empty, blank)
    if empty is not None and pc.any(empty).as_py():
        raise AssertionError("an empty row was not left out")
    return frame


def _parquet(source: BinaryIO) -> Cells:
    import pyarrow.parquet as pq

    source.seek(0)
    try:
        frame = pq.read_table(source)
    except (pa.ArrowException, OSError) as error:
        raise refused("not_a_table", f"cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    names = [header_name(name) for name in frame.column_names]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise refused("header", "is there twice", column=twice[0])
    if not frame.num_rows:
        raise refused("no_rows", "has columns and no rows")
    columns = [_as_text(name, column) for name, column in zip(names, frame.columns, strict=True)]
    return Cells(
        pa.Table.from_arrays(columns, names=names), pa.array(range(1, frame.num_rows + 1), pa.int64())
    )


def _as_text(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        texts = pc.cast(column, pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise refused(
            "not_a_table", f"is of type {column.type}, which is no cell of a table", column=name
        ) from None
    return pc.utf8_trim_whitespace(pc.fill_null(texts, ""))

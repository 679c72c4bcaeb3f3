"""The answers of a feed as values. What the protocol does not allow is a ValueError or a KeyError."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from domain.shared.names import LONGEST, fault_of_name, fault_of_text
from domain.shared.years import YEARS

LONGEST_CURSOR = 1_000
"""Characters: a cursor is kept with every tick, and goes back in a URL."""


@dataclass(frozen=True, order=True)
class Change:
    """Entries of one type, year and institution that an application holds, and their version there."""

    source: str
    institution: str
    data_entry_type: str
    year: int
    version: str


def parse_change(found: Any, source: str) -> Change:
    if not isinstance(found, dict):
        raise ValueError("a change is no object")
    year = found["year"]
    if type(year) is not int or year not in YEARS:
        raise ValueError(f"a change has the year {str(year)[:20]!r}: {YEARS[0]} to {YEARS[-1]}")
    return Change(
        source=source,
        institution=_name(found, "institution"),
        data_entry_type=_name(found, "data_entry_type"),
        year=year,
        version=parse_version(found),
    )


def parse_version(answer: Mapping[str, Any]) -> str:
    """The version of a change or of a page: by it two pages are known to belong together."""
    return _text(answer["version"], "version")


def parse_cursor(answer: Mapping[str, Any]) -> str:
    """The cursor after which to ask next; empty if there is none."""
    value = answer.get("cursor")
    return "" if value in (None, "") else _text(value, "cursor", LONGEST_CURSOR)


def parse_next(answer: Mapping[str, Any]) -> str | None:
    """The next page; None after the last one."""
    value = answer.get("next")
    return None if value is None else _text(value, "next", LONGEST_CURSOR)


def parse_entries(entries: Any) -> pa.Table:
    """Entries as columns, each of one type where all its values are: numbers stay numbers."""
    if not isinstance(entries, list):
        raise ValueError("entries are no list")
    if not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("an entry is no object")
    names = list(dict.fromkeys(name for entry in entries for name in entry))
    if entries and "entry_id" not in names:
        raise ValueError("entries have no entry_id")
    columns = {name: _column([entry.get(name) for entry in entries]) for name in names}
    return pa.table(columns) if columns else pa.table({"entry_id": pa.array([], pa.string())})


def concat_pages(pages: Sequence[pa.Table]) -> pa.Table:
    """All pages in one table. A column that is a number on one page and text on another becomes text."""
    try:
        return pa.concat_tables(pages, promote_options="permissive")
    except pa.ArrowException:
        texts = [page.cast(pa.schema([(name, pa.string()) for name in page.column_names])) for page in pages]
        return pa.concat_tables(texts, promote_options="default")


def _name(found: Mapping[str, Any], name: str) -> str:
    text = _text(found[name], name)
    if fault := fault_of_name(text):
        raise ValueError(f"{name} is {fault}")
    return text


def _text(value: Any, name: str, longest: int = LONGEST) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{name} is no text")
    text = str(value)
    if fault := fault_of_text(text, longest):
        raise ValueError(f"{name} is {fault}")
    return text


def _column(values: list[Any]) -> pa.Array:
    try:
        column = pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([_as_text(value) for value in values], pa.string())
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        return pa.array([_as_text(value) for value in values], pa.string())
    return column.cast(pa.string()) if pa.types.is_null(kind) else column


def _as_text(value: Any) -> str | None:
    """As a person would have typed it; a list or an object as JSON, which the reader of entries refuses."""
    if value is None or isinstance(value, str):
        return value
    return orjson.dumps(value).decode()

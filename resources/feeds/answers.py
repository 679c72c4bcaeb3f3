"""The answers of a feed as values. What the protocol does not allow is a ValueError or a KeyError."""

from __future__ import annotations

from collections.abc import Mapping
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
    names = {name: parse_text(found[name], name) for name in ("institution", "data_entry_type")}
    for name, text in names.items():
        if fault := fault_of_name(text):
            raise ValueError(f"{name} is {fault}")
    return Change(source, **names, year=year, version=parse_text(found["version"], "version"))


def parse_cursor(answer: Mapping[str, Any], name: str) -> str | None:
    """What leads on from here; None if nothing does."""
    value = answer.get(name)
    return None if value is None else parse_text(value, name, LONGEST_CURSOR)


def parse_text(value: Any, name: str, longest: int = LONGEST) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{name} is no text")
    if fault := fault_of_text(text := str(value), longest):
        raise ValueError(f"{name} is {fault}")
    return text


def parse_entries(entries: Any) -> pa.Table:
    """Entries as columns of texts, as a person would have typed them into a file."""
    if not isinstance(entries, list):
        raise ValueError("entries are no list")
    if not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("an entry is no object")
    names = dict.fromkeys(name for entry in entries for name in entry)
    if entries and "entry_id" not in names:
        raise ValueError("entries have no entry_id")
    columns = {name: [_as_text(entry.get(name)) for entry in entries] for name in names or ("entry_id",)}
    return pa.table({name: pa.array(texts, pa.string()) for name, texts in columns.items()})


def _as_text(value: Any) -> str | None:
    """A number as it was sent; a list or an object as JSON, which the reader of entries refuses."""
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()

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


REQUIRED = {"units": "unit_id", "factors": "value", "entries": "entry_id"}
"""By kind of what an application holds, the field that no list of rows may lack."""


@dataclass(frozen=True, order=True)
class Change:
    """Entries or factors of one type, or units, of a year and institution, and their version there."""

    source: str
    institution: str
    data_entry_type: str
    """Empty of units."""
    year: int
    version: str
    kind: str = "entries"


def parse_change(found: Any, source: str) -> Change:
    if not isinstance(found, dict):
        raise ValueError("a change is no object")
    year = found["year"]
    if type(year) is not int or year not in YEARS:
        raise ValueError(f"a change has the year {str(year)[:20]!r}: {YEARS[0]} to {YEARS[-1]}")
    kind = found.get("kind", "entries")
    if kind not in REQUIRED:
        raise ValueError(f"a change has the kind {str(kind)[:20]!r}: none of {', '.join(REQUIRED)}")
    names = {name: parse_text(found[name], name) for name in _names(kind)}
    for name, text in names.items():
        if fault := fault_of_name(text):
            raise ValueError(f"{name} is {fault}")
    version = parse_text(found["version"], "version")
    return Change(source, **{"data_entry_type": "", **names}, year=year, version=version, kind=kind)


def _names(kind: str) -> tuple[str, ...]:
    return ("institution",) if kind == "units" else ("institution", "data_entry_type")


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


def parse_rows(rows: Any, kind: str) -> pa.Table:
    """Rows as columns of texts, as a person would have typed them into a file."""
    if not isinstance(rows, list):
        raise ValueError(f"{kind} are no list")
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"one of {kind} is no object")
    names = dict.fromkeys(name for row in rows for name in row)
    if rows and REQUIRED[kind] not in names:
        raise ValueError(f"{kind} have no {REQUIRED[kind]}")
    columns = {name: [_as_text(row.get(name)) for row in rows] for name in names or (REQUIRED[kind],)}
    return pa.table({name: pa.array(texts, pa.string()) for name, texts in columns.items()})


def _as_text(value: Any) -> str | None:
    """A number as it was sent; a list or an object as JSON, which only a factor's classification may be."""
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()

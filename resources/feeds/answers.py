"""What a feed answers, as values. What the protocol does not allow is a ValueError in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from domain.carbon.feeds import FeedChange, Origin
from domain.shared.names import LONGEST, fault_of_name, fault_of_text
from domain.shared.years import YEARS


def json_object(body: bytes) -> Mapping[str, Any]:
    answer = orjson.loads(body)
    if not isinstance(answer, dict):
        raise ValueError("the answer is no object")
    return answer


CURSOR = 1_000
"""Characters a cursor may have: it is kept with every look, and goes back in an address."""


def cursor_of(told: Mapping[str, Any]) -> str:
    """Empty if there is none."""
    value = told.get("cursor")
    return "" if value in (None, "") else _word(value, "cursor", CURSOR)


def version_of(told: Mapping[str, Any]) -> str:
    """Of two pages without one nobody could say that they belong together."""
    return _word(told["version"], "version")


def change_of(told: Any, origin: Origin) -> FeedChange:
    if not isinstance(told, dict):
        raise ValueError("a change is no object")
    year = told["year"]
    if type(year) is not int or year not in YEARS:
        raise ValueError(f"a change speaks of the year {str(year)[:20]!r}: {YEARS[0]} to {YEARS[-1]}")
    return FeedChange(
        source=origin,
        institution=_name(told, "institution"),
        data_entry_type=_name(told, "data_entry_type"),
        year=year,
        version=version_of(told),
    )


def _name(told: Mapping[str, Any], name: str) -> str:
    word = _word(told[name], name)
    if fault := fault_of_name(word):
        raise ValueError(f"{name} is {fault}")
    return word


def _word(value: Any, name: str, longest: int = LONGEST) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{name} is no text")
    word = str(value)
    if fault := fault_of_text(word, longest):
        raise ValueError(f"{name} is {fault}")
    return word


def entries_of(told: Any) -> pa.Table:
    """Entries as columns, each of one type where all its values are: numbers stay numbers."""
    if not isinstance(told, list):
        raise ValueError("entries are no list")
    names = list(dict.fromkeys(name for entry in told for name in _keys(entry)))
    columns = {name: _column([entry.get(name) for entry in told]) for name in names}
    if told and "entry_id" not in columns:
        raise ValueError("entries have no entry_id")
    return pa.table(columns) if columns else pa.table({"entry_id": pa.array([], pa.string())})


def joined(pages: Sequence[pa.Table]) -> pa.Table:
    """Pages of one place. A column that is a number on one page and a word on another is words."""
    try:
        return pa.concat_tables(pages, promote_options="permissive")
    except pa.ArrowException:
        texts = [page.cast(pa.schema([(name, pa.string()) for name in page.column_names])) for page in pages]
        return pa.concat_tables(texts, promote_options="default")


def _keys(entry: Any) -> Sequence[str]:
    if not isinstance(entry, dict):
        raise ValueError("an entry is no object")
    return tuple(entry)


def _column(values: list[Any]) -> pa.Array:
    try:
        column = pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([_text(value) for value in values], pa.string())
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        return pa.array([_text(value) for value in values], pa.string())
    return column.cast(pa.string()) if pa.types.is_null(kind) else column


def _text(value: Any) -> str | None:
    """As a person would have typed it; what is no single value is shown as it is, and will be refused."""
    if value is None or isinstance(value, str):
        return value
    return orjson.dumps(value).decode()

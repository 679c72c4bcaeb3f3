"""Reads the body of an answer into a typed Arrow table, column by column.

What the source may write for "nothing":

| column | NULL | refused |
|---|---|---|
| number | null, "", NaN (bare or quoted) | infinities, fractions in whole-number columns, other text |
| date | null, "" | anything but eight digits of a real day |
| bool | null, "" | anything but 0, 1, "0", "1", true, false |
| text | null; "" stays the empty string | numbers, lists |

Digits in quotes are numbers. NULL stays NULL, it never becomes 0. A field declared not nullable
must not hold one. Fields that were not requested are ignored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import orjson
import pyarrow as pa

from resources.tushare.errors import BadAnswer, SourceDown
from resources.tushare.request import TushareRequest

Clean = Callable[[str], str]
"""Removes secrets from a text and shortens it."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_DAY = re.compile(r"\d{8}", re.ASCII)
_NOTHING = ("", "nan")
_EXCERPT = 2000
"""Characters of an unreadable answer that are decoded; far fewer are shown."""


@dataclass(frozen=True)
class Answer:
    """The envelope: `code` 0 is success, anything else is explained in `message`."""

    code: object
    message: str
    data: object


@dataclass(frozen=True)
class Rows:
    """A successful answer's content, transposed: one tuple of raw values per field."""

    fields: tuple[str, ...]
    columns: tuple[Sequence[Any], ...]
    count: int
    has_more: bool


def read_answer(api_name: str, body: bytes, clean: Clean) -> Answer:
    try:
        document = _load(body)
    except (ValueError, RecursionError):
        document = None
        unreadable = True
    else:
        unreadable = False
    # Raised outside the handler: a parser's error carries the whole body in its context.
    if unreadable:
        kind = "a web page instead of JSON" if body.lstrip()[:1] == b"<" else "no readable JSON"
        excerpt = clean(body[:_EXCERPT].decode("utf-8", "replace"))
        raise SourceDown(f"{api_name}: {kind} ({len(body)} bytes): {excerpt}")
    if not isinstance(document, dict) or "code" not in document:
        raise BadAnswer(f"{api_name}: the answer is no Tushare envelope: {clean(_shown(document))}")
    message = document.get("msg")
    text = clean(message) if isinstance(message, str) else ""
    code = document["code"]
    return Answer(code if isinstance(code, int) else clean(_shown(code)), text, document.get("data"))


def read_rows(api_name: str, data: object, clean: Clean) -> Rows:
    """Checks the shape: unique field names, and every row a list as long as theirs."""
    data = data if isinstance(data, dict) else {}
    fields, items = data.get("fields"), data.get("items")
    if not isinstance(fields, list) or not isinstance(items, list):
        raise BadAnswer(f"{api_name}: the answer has no lists of fields and items: {clean(_shown(data))}")
    if not all(isinstance(name, str) for name in fields) or len(set(fields)) != len(fields):
        raise BadAnswer(f"{api_name}: the names of the fields are not usable: {clean(_shown(fields))}")
    if set(map(type, items)) - {list} or set(map(len, items)) - {len(fields)}:
        wrong = next(row for row in items if type(row) is not list or len(row) != len(fields))
        raise BadAnswer(f"{api_name}: a row does not fit the {len(fields)} fields: {clean(_shown(wrong))}")
    columns: tuple[Sequence[Any], ...] = tuple(zip(*items, strict=True)) or ((),) * len(fields)
    return Rows(tuple(fields), columns, len(items), has_more=bool(data.get("has_more")))


def to_table(request: TushareRequest, rows: Rows, clean: Clean) -> pa.Table:
    """The requested fields in the requested types, in the requested order."""
    where = {name: index for index, name in enumerate(rows.fields)}
    missing = [name for name in request.schema.names if name not in where]
    if missing:
        raise BadAnswer(f"{request.api_name}: the answer lacks the field {', '.join(missing)}")
    arrays = []
    for field in request.schema:
        array = _array(rows.columns[where[field.name]], field.type)
        if isinstance(array, _Uncastable):
            value = clean(_shown(array.value))
            raise BadAnswer(f"{request.api_name}: {field.name} should be {field.type}, got {value}")
        if not field.nullable and array.null_count:
            raise BadAnswer(
                f"{request.api_name}: {field.name} is empty in {array.null_count} of {rows.count} rows"
            )
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=request.schema)


def _load(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        # The source's own serialiser may write a bare NaN, which is no JSON: the standard parser
        # knows it. Infinities become text, so that the column they are in refuses them by name.
        return json.loads(
            body, parse_constant=lambda word: None if word == "NaN" else word, parse_float=_finite
        )


def _finite(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


@dataclass(frozen=True)
class _Uncastable:
    value: object


def _array(values: Sequence[Any], wanted: pa.DataType) -> pa.Array | _Uncastable:
    if _as_it_is(values, wanted):
        try:
            return pa.array(values, wanted)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass  # the conversion of each value names the one that cannot be read
    return _converted(values, wanted)


def _as_it_is(values: Sequence[Any], wanted: pa.DataType) -> bool:
    """Whether Arrow reads these values exactly as we mean them. It would cut 1.5 to the integer 1."""
    if pa.types.is_int64(wanted):
        return set(map(type, values)) <= {int, type(None)}
    return bool(pa.types.is_float64(wanted) or pa.types.is_string(wanted))


def _converted(values: Sequence[Any], wanted: pa.DataType) -> pa.Array | _Uncastable:
    """Every *distinct* value is converted once: a day's rows have one date, a flag has two values."""
    try:
        distinct = set(values)
    except TypeError:
        return _Uncastable(next(value for value in values if isinstance(value, list | dict)))
    convert = _CONVERTERS[wanted]
    known: dict[Any, Any] = {}
    for value in distinct:
        try:
            known[value] = None if value is None else convert(value)
        except (ValueError, TypeError, OverflowError):
            return _Uncastable(value)
    return pa.array(list(map(known.__getitem__, values)), wanted)


def _to_float(value: object) -> float | None:
    if isinstance(value, str):
        if _is_nothing(value):
            return None
        if not _NUMBER.fullmatch(value.strip()):
            raise ValueError(value)
    number = float(value)  # type: ignore[arg-type]
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _to_int(value: object) -> int | None:
    if isinstance(value, str):
        if _is_nothing(value):
            return None
        if not _WHOLE.fullmatch(value.strip()):
            raise ValueError(value)
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise ValueError(value)
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise OverflowError(value)
    return number


def _to_date(value: object) -> date | None:
    text = str(value) if type(value) is int else value
    if text == "":
        return None
    if not isinstance(text, str) or not _DAY.fullmatch(text):
        raise ValueError(value)
    return date(int(text[:4]), int(text[4:6]), int(text[6:]))


def _to_bool(value: object) -> bool | None:
    if value == "":
        return None
    if value in (0, 1, "0", "1"):
        return bool(int(value))
    raise ValueError(value)


def _to_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    value.encode()  # half of a surrogate pair is no text
    return value


def _is_nothing(text: str) -> bool:
    return text.strip().lower() in _NOTHING


def _shown(value: object) -> str:
    """Enough of a value to recognise it. Still to be cleaned."""
    return repr(value)[:_EXCERPT]


_CONVERTERS: dict[pa.DataType, Callable[[object], Any]] = {
    pa.float64(): _to_float,
    pa.int64(): _to_int,
    pa.date32(): _to_date,
    pa.bool_(): _to_bool,
    pa.string(): _to_text,
}

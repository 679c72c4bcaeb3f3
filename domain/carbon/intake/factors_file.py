"""A file of emission factors: one row per factor, of any types of the catalogue."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.catalogue import Catalogue, EntryType
from domain.carbon.classification import canonical, canonical_value, factor_id, parse
from domain.carbon.quantities import factor_unit
from domain.carbon.quantities import unit as quantity_unit
from domain.shared.error import InvalidInput
from domain.shared.tabular.numbers import Mark
from domain.shared.tabular.sheet import LONGEST, UNSEEN, Parsed, Sheet

COLUMNS = {"year", "data_entry_type", "emission_type", "classification", "value", "unit", "source"}
_MOST = 1e9
_UNSEEN = re.compile(UNSEEN)
_JSON_PLACE = re.compile(r": line \d+ column \d+ \(char \d+\)$")
"""A line number inside the cell, which means nothing in the file."""


def read_factors(
    source: BinaryIO,
    catalogue: Catalogue,
    *,
    year: int | None = None,
    mark: Mark | None = None,
    data_entry_type: str | None = None,
) -> Parsed:
    """Factors of one or more years, of any types or of the one given. What chooses a factor is JSON in
    `classification`, or in a column for each key."""
    given = catalogue.type(data_entry_type).name if data_entry_type else ""
    keys = {c.name for t in catalogue.types.values() for c in t.keys}
    sheet = Sheet.of(source, COLUMNS | keys)
    needed = ["value", "unit"] if given else ["data_entry_type", "value", "unit"]
    sheet.check_header(needed, COLUMNS | keys)
    sheet.choose_mark(["value"], mark)
    sheet.required("value")
    sheet.required("unit")
    types = _types(sheet, catalogue, given)
    columns: dict[str, Any] = {
        "year": sheet.years(year),
        "data_entry_type": types,
        "emission_type": _emission_types(sheet, catalogue, types),
        "classification": _classifications(sheet, catalogue, types, sorted(keys & set(sheet.cells.columns))),
        "value": pa.array(sheet.numbers("value", most=_MOST)),
        "unit": _units(sheet, catalogue, types),
        "source": sheet.words("source"),
    }
    columns["factor_id"] = _ids(columns)
    sheet.merge(["factor_id"], ["value", "unit"], columns, "value", "this factor")
    return sheet.finish(columns)


def _types(sheet: Sheet, catalogue: Catalogue, given: str) -> pa.Array:
    """The type of each row: the column's, or the one given for the whole file."""
    column = "data_entry_type"
    if not given:
        return sheet.choice(column, list(catalogue.types), required=True)
    types = sheet.choice(column, list(catalogue.types), default=given)
    other = pc.and_(pc.not_equal(types, given), pc.not_equal(types, ""))
    sheet.flag(other, column, "other_type", f"is not {given}, the type that was given for the file")
    return pc.if_else(other, "", types)  # what else is wrong in them is of no use


def _emission_types(sheet: Sheet, catalogue: Catalogue, types: pa.Array) -> pa.Array:
    """The column's; without one, the only one that the row's type has."""

    def one(data_entry_type: str, text: str) -> str:
        kind = catalogue.types.get(data_entry_type)
        if kind is None:
            return ""
        if text:
            return kind.emission(text.casefold()).name
        if len(kind.emissions) == 1:
            return kind.emissions[0].name
        names = " or ".join(e.name for e in kind.emissions)
        raise InvalidInput(f"is empty: {kind.name} needs {names}", reason_code="missing")

    return sheet.made("emission_type", [types, sheet.texts("emission_type")], one)


def _units(sheet: Sheet, catalogue: Catalogue, types: pa.Array) -> pa.Array:
    def one(data_entry_type: str, text: str) -> str:
        if not text:
            return ""
        found = factor_unit(text)
        kind = catalogue.types.get(data_entry_type)
        if kind is not None and found.per.dimension != quantity_unit(kind.unit).dimension:
            raise InvalidInput(
                f"counts by {found.per.name}, and {kind.name} is counted in {kind.unit}",
                reason_code="unit_mismatch",
            )
        return str(found)

    return sheet.made("unit", [types, sheet.texts("unit")], one)


def _classifications(sheet: Sheet, catalogue: Catalogue, types: pa.Array, keys: list[str]) -> pa.Array:
    """Every distinct way in which rows say what they are for, checked once."""

    def one(data_entry_type: str, text: str, *words: str) -> str:
        kind = catalogue.types.get(data_entry_type)
        return "" if kind is None else _classification(kind, text, dict(zip(keys, words, strict=True)))

    return sheet.made(
        "classification", [types, sheet.texts("classification"), *(sheet.words(k) for k in keys)], one
    )


def _classification(kind: EntryType, text: str, by_key: Mapping[str, str]) -> str:
    parts = _written(text)
    for key, value in by_key.items():
        word = canonical_value(value)
        if word and parts.setdefault(key, word) != word:
            raise InvalidInput(
                f"{key} is {parts[key]!r} here and {word!r} in its own column", reason_code="classification"
            )
    wanted = {c.name: c for c in kind.keys}
    if strange := sorted(parts.keys() - wanted.keys()):
        known = ", ".join(wanted) or "nothing"
        raise InvalidInput(
            f"{strange[0]!r} does not choose a factor of {kind.name}: {known} does",
            reason_code="classification",
        )
    if missing := sorted(wanted.keys() - parts.keys()):
        raise InvalidInput(
            f"does not say {', '.join(missing)}, which {kind.name} needs", reason_code="classification"
        )
    for name, column in wanted.items():
        allowed = column.values or tuple(s.name for s in column.steps)
        if allowed:
            spelled = {v.casefold(): v for v in allowed}.get(parts[name].casefold())
            if spelled is None:
                raise InvalidInput(
                    f"{name} is {parts[name]!r}: none of {', '.join(allowed)}", reason_code="unknown_value"
                )
            parts[name] = spelled
    return canonical(parts)


def _written(text: str) -> dict[str, str]:
    """Return the keys and values of a JSON cell."""
    if len(text) > LONGEST:
        raise InvalidInput(f"is longer than {LONGEST:,} characters", reason_code="too_long")
    try:
        parts: dict[str, str] = json.loads(parse(text))
    except InvalidInput as error:
        raise InvalidInput(
            _JSON_PLACE.sub("", error.message),
            reason_code=error.reason_code,
            remedy='write {"key": "word"}, or give every key a column of its own',
        ) from None
    for key, word in parts.items():
        if word.startswith("="):
            raise InvalidInput(f"{key} is a formula, not its result", reason_code="formula")
        if _UNSEEN.search(word):
            raise InvalidInput(f"{key} has invisible characters", reason_code="control_character")
    return parts


def _ids(columns: Mapping[str, Any]) -> pa.Array:
    rows = zip(
        *(columns[n].to_pylist() for n in ("year", "data_entry_type", "emission_type", "classification")),
        strict=True,
    )
    return pa.array([factor_id(*row) for row in rows], pa.int64())

"""A file of emission factors: one row per factor, of any types of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.catalogue import Catalogue, EntryType
from domain.carbon.classification import canonical, canonical_value, factor_id, parse
from domain.carbon.intake.sheet import Parsed, Sheet
from domain.carbon.quantities import factor_unit
from domain.carbon.quantities import unit as quantity_unit
from domain.carbon.reading.numbers import Mark
from domain.shared.error import InvalidInput

COLUMNS = {"year", "data_entry_type", "emission_type", "classification", "value", "unit", "source"}
NUMBERS = ("value",)
_MOST = 1e9


def read_factors(
    source: BinaryIO, catalogue: Catalogue, *, year: int | None = None, mark: Mark | None = None
) -> Parsed:
    """Factors of one or more years. What chooses a factor stands as JSON in `classification`, or in a
    column for each key."""
    keys = {c.name for t in catalogue.types.values() for c in t.keys}
    sheet = Sheet.of(source, COLUMNS | keys)
    sheet.check_header(["data_entry_type", "value", "unit"], COLUMNS | keys)
    sheet.choose_mark(NUMBERS, mark)
    sheet.required("value")
    sheet.required("unit")
    types = sheet.choice("data_entry_type", list(catalogue.types), required=True)
    columns: dict[str, Any] = {
        "year": sheet.years(year),
        "data_entry_type": types,
        "emission_type": _emission_types(sheet, catalogue, types),
        "classification": _classifications(sheet, catalogue, types, sorted(keys & set(sheet.cells.columns))),
        "value": sheet.numbers("value", most=_MOST),
        "unit": _units(sheet, catalogue, types),
        "source": sheet.words("source"),
    }
    columns["factor_id"] = _ids(columns)
    return _merged(sheet, columns)


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

    return _by_pair(sheet, "emission_type", types, sheet.texts("emission_type"), one)


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

    return _by_pair(sheet, "unit", types, sheet.texts("unit"), one)


def _classifications(sheet: Sheet, catalogue: Catalogue, types: pa.Array, keys: list[str]) -> pa.Array:
    """Every distinct way in which rows say what they are for, checked once."""
    frame = pa.table(
        {"": types, "classification": sheet.texts("classification")} | {k: sheet.texts(k) for k in keys}
    )
    combined = frame.group_by(frame.column_names).aggregate([])
    made: list[str] = []
    refusals: dict[int, InvalidInput] = {}
    for number, row in enumerate(combined.to_pylist()):
        kind = catalogue.types.get(row.pop(""))
        try:
            made.append("" if kind is None else _classification(kind, row.pop("classification"), row))
        except InvalidInput as error:
            made.append("")
            refusals[number] = error
    combined = combined.append_column("made", pa.array(made, pa.string()))
    combined = combined.append_column("number", pa.array(range(len(made)), pa.int64()))
    frame = frame.append_column("place", pa.array(range(len(frame)), pa.int64()))
    joined = frame.join(combined, [c for c in combined.column_names if c not in ("made", "number")]).sort_by(
        "place"
    )
    numbers = joined.column("number")
    for number, error in refusals.items():
        sheet.flag(pc.equal(numbers, number), "classification", error.reason_code, error.message)
    return joined.column("made").combine_chunks()


def _classification(kind: EntryType, text: str, by_key: Mapping[str, str]) -> str:
    import json

    parts: dict[str, str] = json.loads(parse(text))
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


def _by_pair(sheet: Sheet, column: str, types: pa.Array, texts: pa.Array, convert: Any) -> pa.Array:
    """`convert` for each distinct pair of type and text; what it refuses is a problem of all rows with it."""
    left, right = types.dictionary_encode(), texts.dictionary_encode()
    width = len(right.dictionary)
    codes = np.asarray(left.indices, dtype=np.int64) * width + np.asarray(right.indices, dtype=np.int64)
    distinct, places = np.unique(codes, return_inverse=True)
    made = []
    for number, code in enumerate(distinct.tolist()):
        try:
            made.append(
                convert(left.dictionary[code // width].as_py(), right.dictionary[code % width].as_py())
            )
        except InvalidInput as error:
            made.append("")
            sheet.flag(places == number, column, error.reason_code, error.message)
    return pa.array(made, pa.string()).take(pa.array(places))


def _ids(columns: Mapping[str, Any]) -> pa.Array:
    rows = zip(
        *(columns[n].to_pylist() for n in ("year", "data_entry_type", "emission_type", "classification")),
        strict=True,
    )
    return pa.array([factor_id(*row) for row in rows], pa.int64())


def _merged(sheet: Sheet, columns: dict[str, Any]) -> Parsed:
    """One row per factor. The same factor twice with the same value is told, with another value refused."""
    frame = pa.table(columns | {"line": sheet.cells.lines, "place": pa.array(range(len(sheet)), pa.int64())})
    good = frame.filter(pa.array(~sheet.problems.bad))
    grouped = good.group_by(["factor_id"]).aggregate([("place", "min"), ("place", "count")])
    doubled = grouped.filter(pc.greater(grouped.column("place_count"), 1))
    dropped = np.zeros(len(sheet), dtype=bool)
    if doubled.num_rows:
        firsts = dict(
            zip(doubled.column("factor_id").to_pylist(), doubled.column("place_min").to_pylist(), strict=True)
        )
        value, unit, lines = columns["value"], columns["unit"].to_pylist(), sheet.cells.lines.to_pylist()
        again = good.filter(
            pc.is_in(good.column("factor_id"), value_set=doubled.column("factor_id").combine_chunks())
        )
        for place, number in zip(
            again.column("place").to_pylist(), again.column("factor_id").to_pylist(), strict=True
        ):
            first = firsts[number]
            if place == first:
                continue
            dropped[place] = True
            if (value[place], unit[place]) == (value[first], unit[first]):
                sheet.warnings.append(f"line {lines[place]} says the same as line {lines[first]}")
            else:
                where = np.zeros(len(sheet), dtype=bool)
                where[place] = True
                sheet.flag(
                    where,
                    "value",
                    "duplicate",
                    f"this factor stands on line {lines[first]} with another value",
                )
    parsed = sheet.finish(columns)
    keep = dropped[~sheet.problems.bad]
    return replace(parsed, frame=parsed.frame.filter(pa.array(~keep)))

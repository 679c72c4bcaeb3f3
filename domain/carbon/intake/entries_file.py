"""A file of data entries of one type: quantities per unit, made ready for their factors."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.catalogue import GIVEN, Catalogue, EntryColumn, EntryType
from domain.carbon.classification import canonical, canonical_value
from domain.carbon.intake.sheet import Parsed, Sheet
from domain.carbon.quantities import unit as quantity_unit
from domain.carbon.reading.numbers import Mark
from domain.carbon.reading.problems import FileRefused, Problem
from domain.shared.compute import packaged, query
from domain.shared.error import InvalidInput
from domain.shared.hashing import digest

Floats = npt.NDArray[np.float64]
UnitsOf = Mapping[int, Collection[str]]


@dataclass(frozen=True)
class Scope:
    """What is known of a file beside its content: what it leaves unsaid, and where it belongs."""

    institution: str
    source: str = "csv"
    year: int | None = None
    data_entry_type: str | None = None
    mark: Mark | None = None


def read_entries(source: BinaryIO, catalogue: Catalogue, units: UnitsOf, scope: Scope) -> Parsed:
    """Entries of one type, of one or more years. `units` are those that exist, by year."""
    known = {*GIVEN, *(c.name for t in catalogue.types.values() for c in t.read_columns)}
    sheet = Sheet.of(source, known)
    kind = _type(sheet, catalogue, scope)
    mine = {c.name: c for c in kind.read_columns}
    required = ["unit_id", *([] if sheet.has("kg_co2eq") else [kind.amount.name])]
    sheet.check_header(
        [*required, *(c.name for c in mine.values() if c.required and c.chooses)], {*GIVEN, *mine}
    )
    numeric = [c.name for c in mine.values() if c.role in ("amount", "times", "share")]
    sheet.choose_mark([*numeric, "kg_co2eq"], scope.mark)
    years = sheet.years(scope.year)
    columns: dict[str, Any] = {
        "year": years,
        "data_entry_type": pa.array([kind.name]).take(pa.array(np.zeros(len(sheet), dtype=np.int64))),
        "entry_id": _entry_ids(sheet),
        "unit_id": _units(sheet, years, units),
        "unit": _quantity_units(sheet, kind),
        "kg_co2eq": sheet.numbers("kg_co2eq"),
        "note": sheet.words("note"),
    }
    read = {name: _cell_values(sheet, column) for name, column in mine.items()}
    _amounts(sheet, kind, columns["kg_co2eq"])
    sheet.unique(["year", "entry_id"], columns, "this entry_id")
    columns |= calculated(kind, columns["unit"], read)
    columns["details"] = _details(read)
    parsed = sheet.finish(columns)
    return _keyed(parsed, kind, scope)


def calculated(kind: EntryType, units: pa.Array, read: Mapping[str, Any]) -> dict[str, Any]:
    """Quantity and classification of rows, from the columns of the type's file."""
    size = _sizes(kind, units)  # of the row's unit, in the type's
    amount = np.nan_to_num(read[kind.amount.name])
    quantity = amount + kind.plus / size if kind.plus else amount.copy()
    for column in kind.columns:
        if column.role in ("times", "share"):
            quantity *= read[column.name]
        elif column.role == "flag":
            quantity = np.where(read[column.name], quantity * column.times, quantity)
    words = {c.name: read[c.name] for c in kind.columns if c.role == "key"}
    words |= {c.name: _classes(c, amount * size) for c in kind.columns if c.role == "class"}
    return {"quantity": pa.array(quantity), "classification": _classification(words, len(amount))}


def recalculated(kind: EntryType, entries: pa.Table) -> pa.Table:
    """Entries with quantity and classification as the type's formula is now, from what their files said.

    Rows that were read under the same formula are right as they are.
    """
    if (entries.schema.metadata or {}).get(_RULES) == digest(kind.rules).encode():
        return entries
    parts = [f"CAST(details ->> '{c.name}' AS {_DUCKDB[c.role]}) AS \"{c.name}\"" for c in kind.read_columns]
    cells = query(f"SELECT {', '.join(parts)} FROM entries", {"entries": entries})
    read = {c.name: _as_read(c, cells.column(c.name).combine_chunks()) for c in kind.read_columns}
    made = calculated(kind, entries.column("unit").combine_chunks(), read)
    for name, values in made.items():
        entries = entries.set_column(entries.schema.get_field_index(name), name, values)
    return entries


_RULES = b"rules"
_DUCKDB = {"amount": "DOUBLE", "times": "DOUBLE", "share": "DOUBLE", "flag": "BOOLEAN", "key": "VARCHAR"}


def _as_read(column: EntryColumn, values: pa.Array) -> Any:
    """A column that the type did not have yet is at its default."""
    if column.role == "flag":
        return np.asarray(pc.fill_null(values, column.default == "yes"))
    if column.role == "key":
        return pc.fill_null(values, column.default)
    default = float(column.default) if column.default else 1.0
    return np.asarray(pc.fill_null(values, np.nan if column.role == "amount" else default)).copy()


def _sizes(kind: EntryType, units: pa.Array) -> Floats:
    base = quantity_unit(kind.unit)
    encoded = units.dictionary_encode()
    sizes = [float(quantity_unit(u).size / base.size) if u else 1.0 for u in encoded.dictionary.to_pylist()]
    return np.array(sizes, dtype=np.float64)[np.asarray(encoded.indices)]


def _classes(column: EntryColumn, amount: Floats) -> pa.Array:
    bounds = [s.below for s in column.steps if s.below is not None]
    places = np.searchsorted(np.array(bounds), amount, side="right")
    return pa.array([s.name for s in column.steps], pa.string()).take(pa.array(places))


def _classification(words: Mapping[str, pa.Array], count: int) -> pa.Array:
    """The canonical spelling of every distinct combination, made once."""
    labels, dictionaries = np.zeros(count, dtype=np.int64), []
    for values in words.values():
        encoded = values.dictionary_encode()
        dictionaries.append(encoded.dictionary.to_pylist())
        labels = labels * max(len(encoded.dictionary), 1) + np.asarray(encoded.indices, dtype=np.int64)
    distinct, places = np.unique(labels, return_inverse=True)
    made = []
    for code in distinct.tolist():
        parts = {}
        for name, dictionary in zip(reversed(list(words)), reversed(dictionaries), strict=True):
            code, place = divmod(code, max(len(dictionary), 1))  # noqa: PLW2901
            parts[name] = dictionary[place]
        made.append(canonical(parts))
    return pa.array(made, pa.string()).take(pa.array(places))


def _type(sheet: Sheet, catalogue: Catalogue, scope: Scope) -> EntryType:
    """The one type of the file, given or in its column."""
    if not sheet.has("data_entry_type"):
        if scope.data_entry_type is None:
            raise _refused("missing_column", "is missing, and no type was given beside the file")
        return catalogue.type(scope.data_entry_type)
    names = pc.unique(pc.utf8_lower(sheet.texts("data_entry_type"))).to_pylist()
    wanted = scope.data_entry_type or next((n for n in names if n), "")
    kind = catalogue.types.get(wanted)
    if kind is None:
        raise _refused("unknown_type", f"{wanted!r} is none of {', '.join(sorted(catalogue.types))}")
    other = pc.not_equal(pc.utf8_lower(sheet.texts("data_entry_type")), kind.name)
    sheet.flag(
        other, "data_entry_type", "other_type", f"is not {kind.name}: a file holds entries of one type"
    )
    return kind


def _refused(code: str, reason: str) -> FileRefused:
    return FileRefused("", [Problem(0, "data_entry_type", "", code, reason)], 1)


def _entry_ids(sheet: Sheet) -> pa.Array:
    """The file's own ids, or the lines."""
    if sheet.has("entry_id"):
        return sheet.words("entry_id", required=True)
    return pc.binary_join_element_wise("line ", pc.cast(sheet.cells.lines, pa.string()), "")


def _units(sheet: Sheet, years: pa.Array, units: UnitsOf) -> pa.Array:
    """Each must exist in the year of its row."""
    texts = sheet.words("unit_id", required=True)
    for year in pc.unique(years).to_pylist():
        known = units.get(year, ())
        in_year = pc.equal(years, year)
        if not known:
            sheet.flag(in_year, "year", "no_units", f"no units of {year} are known: upload them first")
            continue
        strange = pc.invert(pc.is_in(texts, value_set=pa.array([*known, ""], pa.string())))
        sheet.flag(pc.and_(in_year, strange), "unit_id", "unknown_unit_id", f"is no unit of {year}")
    return texts


def _quantity_units(sheet: Sheet, kind: EntryType) -> pa.Array:
    def convert(text: str) -> str:
        if not text:
            return kind.unit
        found = quantity_unit(text)
        if found.name not in kind.units:
            raise InvalidInput(f"is no unit of {kind.name}: one of {', '.join(kind.units)}")
        return found.name

    return sheet.converted("unit", convert, "unknown_unit")


def _cell_values(sheet: Sheet, column: EntryColumn) -> Any:
    """A column of the type: numbers, booleans or words."""
    if column.role == "flag":
        return sheet.booleans(column.name, column.default == "yes")
    if column.role == "key":
        return _words(sheet, column)
    default = float(column.default) if column.default else None
    values = sheet.numbers(
        column.name, default=1.0 if column.role != "amount" and default is None else default
    )
    if column.role == "share":
        sheet.flag(values > 1, column.name, "share", "is no share: from 0 to 1")
    return values


def _words(sheet: Sheet, column: EntryColumn) -> pa.Array:
    if column.values:
        return sheet.choice(column.name, column.values, default=column.default, required=column.required)
    texts = sheet.words(column.name, required=column.required)
    found = _canonical_words(texts)
    return pc.if_else(pc.equal(found, ""), column.default, found) if column.default else found


def _canonical_words(texts: pa.Array) -> pa.Array:
    encoded = texts.dictionary_encode()
    words = pa.array([canonical_value(w) for w in encoded.dictionary.to_pylist()], pa.string())
    return words.take(encoded.indices)


def _amounts(sheet: Sheet, kind: EntryType, measured: Floats) -> None:
    """A row has an amount, or a mass that was measured."""
    name = kind.amount.name
    if not sheet.has(name):
        sheet.flag(np.isnan(measured), "kg_co2eq", "missing", f"is empty, and the file has no {name}")
        return
    neither = np.asarray(pc.equal(sheet.texts(name), "")) & np.isnan(measured)
    sheet.flag(neither, name, "missing", "is empty")


def _details(read: Mapping[str, Any]) -> pa.Array:
    """The columns as they were read, as JSON: what the quantity was made of."""
    frame = pa.table({n: pa.array(v) if isinstance(v, np.ndarray) else v for n, v in read.items()})
    parts = ", ".join(
        f"{json.dumps(n)} := "
        + (f"CASE WHEN isnan({_q(n)}) THEN NULL ELSE {_q(n)} END" if pa.types.is_floating(t) else _q(n))
        for n, t in zip(frame.column_names, frame.schema.types, strict=True)
    )
    return query(
        f"SELECT to_json(struct_pack({parts}))::VARCHAR AS details FROM cells", {"cells": frame}
    ).column(0)


def _q(name: str) -> str:
    return f'"{name}"'


def _keyed(parsed: Parsed, kind: EntryType, scope: Scope) -> Parsed:
    """With what makes an entry one of many sources: whose it is, and its number."""
    sql = packaged(__file__, "keyed_entries")
    frame = query(sql, {"entries": parsed.frame}, {"institution": scope.institution, "source": scope.source})
    frame = frame.replace_schema_metadata({_RULES: digest(kind.rules)})
    return replace(parsed, frame=frame)

"""A file of data entries of one type: quantities per unit, made ready for their factors."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.catalogue import GIVEN, Catalogue, EntryColumn, EntryType
from domain.carbon.classification import canonical, canonical_value
from domain.carbon.quantities import unit as quantity_unit
from domain.carbon.tables import DATA_ENTRIES
from domain.shared.compute import query
from domain.shared.error import InvalidInput
from domain.shared.hashing import digest
from domain.shared.packaged import packaged
from domain.shared.tabular.combinations import distinct
from domain.shared.tabular.numbers import MOST, Mark
from domain.shared.tabular.sheet import Parsed, Sheet

Floats = npt.NDArray[np.float64]
UnitsOf = Callable[[int], Collection[str]]
"""By year, the units that exist."""


@dataclass(frozen=True)
class Scope:
    """What is known of a file besides its content: its year, type, institution and source."""

    institution: str
    source: str = "csv"
    year: int | None = None
    data_entry_type: str | None = None
    mark: Mark | None = None


def read_entries(source: BinaryIO, catalogue: Catalogue, units: UnitsOf, scope: Scope) -> Parsed:
    """Entries of one type, of one or more years."""
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
        "data_entry_type": pa.repeat(pa.scalar(kind.name), len(sheet)),
        "entry_id": _entry_ids(sheet),
        "unit_id": _units(sheet, years, units),
        "unit": _quantity_units(sheet, kind),
        "kg_co2eq": pa.array(sheet.numbers("kg_co2eq")),
        "note": sheet.words("note"),
    }
    read = {name: _cell_values(sheet, column) for name, column in mine.items()}
    _amounts(sheet, kind)
    columns |= calculated(kind, columns["unit"], read)
    _sizes_possible(sheet, kind, columns)
    columns["details"] = _details(read)
    if sheet.has("entry_id"):
        values = [name for name in columns if name not in ("year", "entry_id")]
        sheet.merge(["year", "entry_id"], values, columns, "entry_id", "this entry_id")
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
    """Return entries with quantity and classification by the type's current formula.

    Rows that were read under the same formula are right as they are.
    """
    if _rules(kind).items() <= (entries.schema.metadata or {}).items():
        return entries
    parts = [f"CAST(details ->> '{c.name}' AS {_DUCKDB[c.role]}) AS \"{c.name}\"" for c in kind.read_columns]
    cells = query(f"SELECT {', '.join(parts)} FROM entries", {"entries": entries})
    read = {c.name: _as_read(c, cells.column(c.name).combine_chunks()) for c in kind.read_columns}
    made = calculated(kind, entries.column("unit").combine_chunks(), read)
    for name, values in made.items():
        entries = entries.set_column(entries.schema.get_field_index(name), name, values)
    return entries


def no_entries(kind: EntryType) -> pa.Table:
    """The rows of a place that has none."""
    schema = pa.schema([DATA_ENTRIES.schema.field(name) for name in _COLUMNS], metadata=_rules(kind))
    return schema.empty_table()


def _rules(kind: EntryType) -> dict[bytes, bytes]:
    """The mark of a frame that was made by these rules."""
    return {b"rules": digest(kind.rules).encode()}


_COLUMNS = (
    *("year", "data_entry_type", "entry_key", "entry_id", "institution", "source", "unit_id", "quantity"),
    *("unit", "classification", "kg_co2eq", "note", "details", "line"),
)
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
    of_rows: Floats = np.array(sizes, dtype=np.float64)[np.asarray(encoded.indices)]
    return of_rows


def _classes(column: EntryColumn, amount: Floats) -> pa.Array:
    bounds = [s.below for s in column.steps if s.below is not None]
    places = np.searchsorted(np.array(bounds), amount, side="right")
    return pa.array([s.name for s in column.steps], pa.string()).take(pa.array(places))


def _classification(words: Mapping[str, pa.Array], count: int) -> pa.Array:
    """The canonical spelling of every distinct combination, made once."""
    if not words:
        return pa.repeat(pa.scalar(canonical({})), count)
    numbers, firsts = distinct(list(words.values()))
    chosen = pa.array(firsts)
    combinations = zip(*(column.take(chosen).to_pylist() for column in words.values()), strict=True)
    made = [canonical(dict(zip(words, each, strict=True))) for each in combinations]
    return pa.array(made, pa.string()).take(pa.array(numbers))


def _type(sheet: Sheet, catalogue: Catalogue, scope: Scope) -> EntryType:
    """The one type of the file, given or in its column: there the first that is one."""
    column = "data_entry_type"
    if not sheet.has(column):
        if scope.data_entry_type is None:
            raise sheet.lacking(column, "type")
        return catalogue.type(scope.data_entry_type)
    texts = pc.utf8_lower(sheet.texts(column))
    kind = catalogue.type(
        scope.data_entry_type or _first_type(sheet, catalogue, pc.unique(texts).to_pylist())
    )
    other = pc.not_equal(texts, kind.name)
    sheet.flag(other, column, "other_type", f"is not {kind.name}: a file has entries of one type")
    return kind


def _first_type(sheet: Sheet, catalogue: Catalogue, names: list[str]) -> str:
    for name in names:
        if name in catalogue.types:
            return name
    reason = f"is none of {', '.join(sorted(catalogue.types))}"
    raise sheet.refusal("data_entry_type", "unknown_type", reason, next(filter(None, names), ""))


def _entry_ids(sheet: Sheet) -> pa.Array:
    """The file's own ids, or the lines."""
    if sheet.has("entry_id"):
        return sheet.words("entry_id", required=True)
    return pc.binary_join_element_wise("line ", pc.cast(sheet.cells.lines, pa.string()), "")


def _units(sheet: Sheet, years: pa.Array, units: UnitsOf) -> pa.Array:
    """Each must exist in the year of its row."""
    texts = sheet.words("unit_id", required=True)
    for year in pc.unique(years).to_pylist():
        if year < 0:
            continue  # is a problem already
        known = units(year)
        in_year = pc.equal(years, year)
        if not known:
            sheet.flag(
                in_year,
                "year",
                "no_units",
                f"no units of {year} are known: upload them first",
            )
            continue
        strange = pc.invert(pc.is_in(texts, value_set=pa.array([*known, ""], pa.string())))
        sheet.flag(pc.and_(in_year, strange), "unit_id", "unknown_unit_id", f"is no unit of {year}")
    return texts


def _quantity_units(sheet: Sheet, kind: EntryType) -> pa.Array:
    wanted = f"is no unit of {kind.name}: one of {', '.join(kind.units)}"

    def convert(text: str) -> str:
        try:
            found = quantity_unit(text).name if text else kind.unit
        except InvalidInput:
            found = ""
        if found not in kind.units:
            raise InvalidInput(wanted, reason_code="unknown_unit")
        return found

    return sheet.made("unit", [sheet.texts("unit")], convert)


def _cell_values(sheet: Sheet, column: EntryColumn) -> Any:
    """A column of the type: numbers, booleans or words."""
    if column.role == "flag":
        return sheet.booleans(column.name, column.default == "yes")
    if column.role == "key":
        return _words(sheet, column)
    otherwise = np.nan if column.role == "amount" else 1.0
    values = sheet.numbers(column.name, default=float(column.default or otherwise))
    if column.role == "share":
        sheet.flag(values > 1, column.name, "share", "is no share: from 0 to 1")
    return values


def _words(sheet: Sheet, column: EntryColumn) -> pa.Array:
    if column.values:
        return sheet.choice(column.name, column.values, default=column.default, required=column.required)
    texts = sheet.words(column.name, required=column.required)
    return sheet.made(column.name, [texts], lambda word: canonical_value(word) or column.default)


def _amounts(sheet: Sheet, kind: EntryType) -> None:
    """A row has an amount, or a mass that was measured."""
    name = kind.amount.name
    neither = pc.and_(pc.equal(sheet.texts(name), ""), pc.equal(sheet.texts("kg_co2eq"), ""))
    if sheet.has(name):
        sheet.flag(neither, name, "missing", "is empty")
    else:
        sheet.flag(neither, "kg_co2eq", "missing", f"is empty, and the file has no {name}")


def _sizes_possible(sheet: Sheet, kind: EntryType, columns: Mapping[str, Any]) -> None:
    """Each number may be right by itself, and what they make together be none."""
    much = pc.greater(columns["quantity"], MOST)
    reason = f"makes more than {MOST:,.0f} with all that multiplies it: is the decimal mark right?"
    sheet.flag(much, kind.amount.name, "too_large", reason)


def _details(read: Mapping[str, Any]) -> pa.Array:
    """The columns as they were read, as JSON: what the quantity was made of."""
    frame = pa.table({n: pa.array(v) if isinstance(v, np.ndarray) else v for n, v in read.items()})
    parts = ", ".join(
        f"{json.dumps(n)} := "
        + (f"CASE WHEN isnan({_q(n)}) THEN NULL ELSE {_q(n)} END" if pa.types.is_floating(t) else _q(n))
        for n, t in zip(frame.column_names, frame.schema.types, strict=True)
    )
    return (
        query(f"SELECT to_json(struct_pack({parts}))::VARCHAR AS details FROM cells", {"cells": frame})
        .column(0)
        .combine_chunks()
    )


def _q(name: str) -> str:
    return f'"{name}"'


def _keyed(parsed: Parsed, kind: EntryType, scope: Scope) -> Parsed:
    """Return the entries with institution, source and entry number."""
    entries = parsed.frame
    keys = query(
        packaged(__file__, "keyed_entries"),
        {"entries": entries.select(["entry_id"])},
        {"institution": scope.institution, "source": scope.source},
    )
    mass, note = entries.column("kg_co2eq"), entries.column("note")
    added = {
        "entry_key": keys.column(0),
        "institution": pa.repeat(pa.scalar(scope.institution), len(entries)),
        "source": pa.repeat(pa.scalar(scope.source), len(entries)),
        "kg_co2eq": pc.if_else(pc.is_nan(mass), pa.scalar(None, pa.float64()), mass),
        "note": pc.if_else(pc.equal(note, ""), pa.scalar(None, pa.string()), note),
    }
    columns = dict(zip(entries.column_names, entries.columns, strict=True)) | added
    frame = pa.table([columns[name] for name in _COLUMNS], names=_COLUMNS, metadata=_rules(kind))
    return replace(parsed, frame=frame)

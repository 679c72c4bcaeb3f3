"""The milligrams that one unit of quantity causes, for each classification and unit: what emissions.sql
joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from domain.carbon.catalogue import EntryType
from domain.carbon.choice import Choice, choose
from domain.carbon.quantities import factor_unit, to_milligrams
from domain.carbon.quantities import unit as quantity_unit

PER_KG = 1e6
_LISTED = pa.dictionary(pa.int32(), pa.string())
RATES = pa.schema(
    {
        "classification": pa.string(),
        "unit": pa.string(),
        "measured": pa.bool_(),
        "year": pa.int32(),
        "data_entry_type": _LISTED,
        "emission_type": _LISTED,
        "status": _LISTED,
        "mg_per_unit": pa.float64(),
        "factor_id": pa.int64(),
        "factor_version": pa.int32(),
    }
)


def rates(kind: EntryType, year: int, pairs: Sequence[tuple[str, str]], factors: pa.Table) -> pa.Table:
    """A row for each (classification, unit) and emission type, and one of each pair for measured masses."""
    chosen = choose(kind, list(dict.fromkeys(classification for classification, _ in pairs)), factors)
    rows = [
        {"classification": classification, "unit": unit, "year": year, "data_entry_type": kind.name} | row
        for classification, unit in pairs
        for row in _of_pair(kind, classification, unit, chosen)
    ]
    return pa.Table.from_pylist(rows, RATES)


def _of_pair(
    kind: EntryType, classification: str, unit: str, chosen: dict[str, Choice]
) -> Iterator[dict[str, Any]]:
    for emission, choice in chosen.items():
        row: dict[str, Any] = {"measured": False, "emission_type": emission, "status": "unmatched"}
        if (factor := choice[classification]) is not None:
            per_unit = to_milligrams(factor_unit(factor.unit), quantity_unit(unit))(factor.value)
            row |= {"status": "matched", "mg_per_unit": per_unit}
            row |= {"factor_id": factor.id, "factor_version": factor.version}
        yield row
    first = kind.emissions[0].name
    yield {"measured": True, "emission_type": first, "status": "overridden", "mg_per_unit": PER_KG}


def units(names: pa.Array) -> pa.Table:
    """Each unit by its name, and as a number in a list of names, which is how it is written."""
    return pa.table({"name": names, "unit_id": names.dictionary_encode()})

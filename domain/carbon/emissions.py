"""From entries and factors to masses: one query per type, whole milligrams per row."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping

import pyarrow as pa

from domain.carbon.catalogue import EntryType
from domain.carbon.classification import canonical
from domain.carbon.quantities import factor_unit, milligrams
from domain.carbon.quantities import unit as quantity_unit
from domain.carbon.tables import EMISSIONS
from domain.shared.compute import connection, packaged, query
from domain.shared.error import InvalidInput

MOST = 9_007_199_254_740_992
"""Milligrams one result may have: nine million tonnes. What is more, is a mistake in an amount or a factor;
and beyond it doubles no longer know whole milligrams."""

_RATES = pa.schema(
    [
        ("classification", pa.string()),
        ("unit", pa.string()),
        ("emission_type", pa.string()),
        ("factor_id", pa.int64()),
        ("factor_version", pa.int32()),
        ("mg_per_unit", pa.float64()),
    ]
)

Factor = tuple[int, int, float, str]


def emissions(kind: EntryType, entries: pa.Table, factors: pa.Table) -> pa.Table:
    """What the entries of one type and year cause, with the factors of that year.

    `entries` needs the columns year, entry_key, unit_id, quantity, unit, classification, kg_co2eq.
    """
    pairs = query("SELECT DISTINCT classification, unit FROM entries", {"entries": entries})
    chosen = rates(kind, pairs, factors)
    parameters = {"type": kind.name, "first": kind.emissions[0].name}
    with connection(entries=entries, rates=chosen) as con:
        found = con.sql(packaged(__file__, "emissions"), params=parameters).to_arrow_table()
    frame = found.cast(EMISSIONS.schema)
    _check_size(kind, frame)
    return frame


def rates(kind: EntryType, pairs: pa.Table, factors: pa.Table) -> pa.Table:
    """For each (classification, unit) of the entries and each kind of emissions, the mass of one unit.

    Emissions that no factor of the year speaks of are not counted at all; if none is spoken of, the first is
    unmatched, so that nothing vanishes.
    """
    by_emission = _by_emission(kind, factors)
    counted = [e.name for e in kind.emissions if e.name in by_emission] or [kind.emissions[0].name]
    rows: list[tuple[object, ...]] = []
    for pair in pairs.to_pylist():
        wanted, unit = pair["classification"], pair["unit"]
        for emission in counted:
            factor = _choose(kind, wanted, by_emission.get(emission, {}))
            if factor is None:
                rows.append((wanted, unit, emission, None, None, None))
                continue
            number, version, value, per = factor
            rate = milligrams(value, factor_unit(per), quantity_unit(unit))
            rows.append((wanted, unit, emission, number, version, rate))
    columns = list(zip(*rows, strict=True)) or [() for _ in _RATES]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, _RATES, strict=True)], schema=_RATES)


def _by_emission(kind: EntryType, factors: pa.Table) -> dict[str, dict[str, Factor]]:
    found: dict[str, dict[str, Factor]] = defaultdict(dict)
    names = ("data_entry_type", "emission_type", "classification", "factor_id", "version", "value", "unit")
    for name, emission, wanted, *factor in zip(*(factors.column(n).to_pylist() for n in names), strict=True):
        if name == kind.name:
            number, version, value, unit = factor
            found[emission][wanted] = (number, version, value, unit)
    return found


def _choose(kind: EntryType, wanted: str, factors: Mapping[str, Factor]) -> Factor | None:
    """The factor of exactly these words; else of as many as possible, the others at their fallback."""
    if (exact := factors.get(wanted)) is not None:
        return exact
    parts: dict[str, str] = json.loads(wanted)
    for column in reversed(kind.keys):
        if column.fallback:
            parts[column.name] = column.fallback
            if (found := factors.get(canonical(parts))) is not None:
                return found
    return None


def _check_size(kind: EntryType, frame: pa.Table) -> None:
    sql = "SELECT entry_key, mg_co2e FROM emissions WHERE mg_co2e > $most ORDER BY mg_co2e DESC LIMIT 1"
    for row in query(sql, {"emissions": frame}, {"most": MOST}).to_pylist():
        raise InvalidInput(
            f"entry {row['entry_key']} of {kind.name} would cause {row['mg_co2e'] / 1e9:,.0f} tonnes",
            reason_code="implausible_mass",
            remedy="look at its amount and at the factor's unit, and upload the wrong one again",
        )

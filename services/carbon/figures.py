"""What a partition comes to, in a few numbers that can be laid beside those of the time before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from domain.carbon.tables import (
    DATA_ENTRIES,
    EMISSIONS,
    FACTOR_VERSIONS,
    FACTORS,
    REPORT_MODULES,
    REPORTS,
    UNITS,
)
from domain.shared.compute import query
from domain.shared.table import Table


@dataclass(frozen=True)
class Measure:
    """`sql` gives a label and a number for each part; all numbers have one unit, so they add up."""

    unit: str
    sql: str


_TONNES = "CAST(coalesce(sum({}), 0) AS DOUBLE) / 1e9"
MEASURES: Mapping[str, Measure] = {
    UNITS.name: Measure("units", "SELECT coalesce(parent_id, 'top'), count(*) FROM made GROUP BY 1"),
    FACTORS.name: Measure(
        "factors in the latest file",
        "SELECT data_entry_type, count(*) FILTER (WHERE NOT stale) FROM made GROUP BY 1",
    ),
    FACTOR_VERSIONS.name: Measure("values", "SELECT data_entry_type, count(*) FROM made GROUP BY 1"),
    DATA_ENTRIES.name: Measure(
        "entries", "SELECT institution || ', ' || source, count(*) FROM made GROUP BY 1"
    ),
    EMISSIONS.name: Measure(
        "t CO2e", f"SELECT emission_type, {_TONNES.format('mg_co2e')} FROM made GROUP BY 1"
    ),
    REPORT_MODULES.name: Measure(
        "t CO2e", f"SELECT data_entry_type, {_TONNES.format('mg_co2e')} FROM made GROUP BY 1"
    ),
    REPORTS.name: Measure("t CO2e", f"SELECT module, {_TONNES.format('own_mg')} FROM made GROUP BY 1"),
}
"""By table. Kept with what was recorded of a partition: the next time they are the time before."""


PARTS = 100
"""Parts that are kept one by one: of a large organisation every unit may be one."""
OTHERS = "others"


def figures(table: Table, made: pa.Table) -> dict[str, float]:
    """By part; of very many the largest, and the sum of the others."""
    found = query(MEASURES[table.name].sql, {"made": made})
    parts, numbers = (column.to_pylist() for column in found.columns)
    largest = sorted(zip(parts, numbers, strict=True), key=lambda part: (-part[1], part[0]))
    kept = dict(sorted(largest[:PARTS]))
    if rest := largest[PARTS:]:
        kept[OTHERS] = kept.get(OTHERS, 0) + sum(number for _, number in rest)
    return kept


def changes(before: Mapping[str, float] | None, after: Mapping[str, float]) -> list[dict[str, Any]]:
    """Part by part, the largest change first. Where nothing is known of before, nothing is said of it."""
    if before is None:
        largest = sorted(after.items(), key=lambda part: (-abs(part[1]), part[0]))
        return [{"part": part, "before": "", "after": number, "change": ""} for part, number in largest]
    pairs = {part: (before.get(part, 0), after.get(part, 0)) for part in before.keys() | after.keys()}
    rows = [{"part": p, "before": old, "after": new, "change": new - old} for p, (old, new) in pairs.items()]
    return sorted(rows, key=lambda row: (-abs(row["change"]), -abs(row["after"]), row["part"]))


def sentence(unit: str, before: Mapping[str, float] | None, after: Mapping[str, float]) -> str:
    """The sum in words: "9,364.639 → 9,811.931 t CO2e (+4.8 %)"."""
    new = sum(after.values())
    if before is None:
        return f"{_number(new)} {unit}; nothing is known from before"
    old = sum(before.values())
    if before == after:
        return f"{_number(new)} {unit}, as before"
    share = f" ({(new / old - 1) * 100:+.1f} %)" if old else ""
    return f"{_number(old)} → {_number(new)} {unit}{share}"


def _number(value: float) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}"

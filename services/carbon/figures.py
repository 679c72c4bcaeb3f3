"""What a partition adds up to, in a few numbers that can be laid beside those of the time before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
from services.partitions import Figures


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
"""By table. Recorded with a partition: the next time they are what it added up to before."""


PARTS = 100
"""Parts that are kept one by one: of a large organisation every unit may be one."""
OTHERS = "others"


def figures(table: Table, made: pa.Table) -> Figures:
    """What a partition adds up to, part by part; of very many the largest, and the sum of the others."""
    measure = MEASURES[table.name]
    found = query(measure.sql, {"made": made})
    parts, numbers = (column.to_pylist() for column in found.columns)
    largest = sorted(zip(parts, numbers, strict=True), key=lambda part: (-part[1], part[0]))
    kept = dict(sorted(largest[:PARTS]))
    if rest := largest[PARTS:]:
        kept[OTHERS] = kept.get(OTHERS, 0) + sum(number for _, number in rest)
    return Figures(measure.unit, kept)

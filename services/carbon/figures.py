"""What a partition adds up to, in a few numbers that are compared with those of the time before."""

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
from domain.shared.packaged import packaged
from domain.shared.table import Table
from services.partitions import Figures

PARTS = 100
"""Parts that are kept one by one: of a large organisation every unit may be one."""
OTHERS = "others"


@dataclass(frozen=True)
class Measure:
    """SQL of the label and of the number of each part; all numbers have one unit, so they add up."""

    unit: str
    part: str
    number: str = "count(*)"


_TONNES = "CAST(coalesce(sum({}), 0) AS DOUBLE) / 1e9"
_MEASURES: Mapping[str, Measure] = {
    UNITS.name: Measure("units", "coalesce(parent_id, 'top')"),
    FACTORS.name: Measure(
        "factors in the latest file", "data_entry_type", "count(*) FILTER (WHERE NOT stale)"
    ),
    FACTOR_VERSIONS.name: Measure("values", "data_entry_type"),
    DATA_ENTRIES.name: Measure("entries", "institution || ', ' || source"),
    EMISSIONS.name: Measure("t CO2e", "emission_type", _TONNES.format("mg_co2e")),
    REPORT_MODULES.name: Measure("t CO2e", "data_entry_type", _TONNES.format("mg_co2e")),
    REPORTS.name: Measure("t CO2e", "module", _TONNES.format("own_mg")),
}


def figures(table: Table, made: pa.Table) -> Figures:
    """What a partition adds up to, part by part; of very many the largest, and the sum of the others."""
    measure = _MEASURES[table.name]
    sql = packaged(__file__, "figures").format(part=measure.part, number=measure.number)
    parts, numbers = (column.to_pylist() for column in query(sql, {"made": made}).columns)
    kept = dict(sorted(zip(parts[:PARTS], numbers[:PARTS], strict=True)))
    if rest := numbers[PARTS:]:
        kept[OTHERS] = kept.get(OTHERS, 0) + sum(rest)
    return Figures(measure.unit, kept)

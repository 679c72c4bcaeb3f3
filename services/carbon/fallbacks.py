"""Which entries are counted with a fallback factor: those of a report, and those of a file that comes."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.fallbacks import FactorGaps, Fallback, factor_gaps, is_fallback
from domain.carbon.observed import Observed
from domain.carbon.report_state import types_with_changed_entries
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, FACTORS, UNITS
from domain.shared.packaged import packaged
from services.carbon.service import CarbonService

_SEEN_BY_A_CHOICE = ["data_entry_type", "emission_type", "classification", "factor_id", "value", "unit"]


def fallbacks_of_report(
    carbon: CarbonService, year: int, unit: str | None, seen: Observed
) -> tuple[Fallback, ...]:
    """Return the fallbacks of a year's results, the heaviest first.

    Nothing is known of types that cannot be read, or whose entries are no longer those that were calculated.
    """
    if not seen.state(FACTORS.table, str(year)).version.readable:
        return ()
    changed = types_with_changed_entries(carbon.catalogue, seen, year)
    named = [
        kind.name
        for kind in carbon.catalogue.types.values()
        if any(key.fallback for key in kind.keys)
        and kind.name not in changed
        and seen.state(EMISSIONS.table, f"{kind.name}|{year}").version.readable
    ]
    partitions = [f"{name}|{year}" for name in named]
    found = carbon.lake.query(
        packaged(__file__, "fallbacks"),
        params={"year": year, "unit": unit, "types": named},
        partitions={
            UNITS.name: [str(year)],
            FACTORS.name: [str(year)],
            DATA_ENTRIES.name: partitions,
            EMISSIONS.name: partitions,
        },
    )
    rows = [Fallback(**row) for row in found.to_pylist()]
    return tuple(row for row in rows if is_fallback(row.wanted, row.used))


def gaps_of_file(carbon: CarbonService, data_entry_type: str, rows: pa.Table) -> Iterator[FactorGaps]:
    """What the factors of its years leave open of a file's rows; nothing of a year without known factors."""
    kind, rows = carbon.catalogue.type(data_entry_type), rows.select(["year", "classification", "kg_co2eq"])
    for year in sorted(rows.column("year").unique().to_pylist()):
        factors = _known_factors(carbon, year)
        if factors.num_rows:
            yield factor_gaps(kind, year, rows.filter(pc.equal(rows.column("year"), year)), factors)


def _known_factors(carbon: CarbonService, year: int) -> pa.Table:
    """The factors of a year with those of uploads that wait; none while the table cannot be read."""
    if not carbon.lake.version(FACTORS.name, str(year)).readable:
        return FACTORS.schema.empty_table()
    records = carbon.provenance.records([FACTORS.name], [str(year)])
    imported = {
        number for record in records.values() for number in record.inputs.get("uploads", "").split(",")
    }
    waiting = [
        carbon.staged_rows(one)
        for one in carbon.store.uploads.current()
        if one.kind == "factors" and year in one.years and str(one.id) not in imported
    ]
    known = [carbon.factors(year), *(rows.filter(pc.equal(rows.column("year"), year)) for rows in waiting)]
    columns = pa.concat_tables(
        [rows.select(_SEEN_BY_A_CHOICE) for rows in known], promote_options="permissive"
    )
    return columns.append_column("version", pa.repeat(pa.scalar(0, pa.int32()), columns.num_rows))

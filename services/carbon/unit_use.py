"""What a file of units leaves out although it is used: its entries would stand outside the tree."""

from __future__ import annotations

from collections.abc import Collection

from domain.carbon.tables import DATA_ENTRIES
from resources.lake.error import DataCorrupt, DataUnavailable
from services.carbon.service import CarbonService

_SHOWN = 5


def units_left_out(carbon: CarbonService, institution: str, year: int, units: Collection[str]) -> str | None:
    """In a sentence, the units of an institution's entries that are not among these."""
    partitions = [p for p in carbon.lake.partitions(DATA_ENTRIES.name) if p.endswith(f"|{year}")]
    if not partitions:
        return None
    try:
        used = carbon.lake.query(
            f"SELECT DISTINCT unit_id FROM {DATA_ENTRIES.name} "
            "WHERE year = $year AND institution = $institution",
            params={"year": year, "institution": institution},
            partitions={DATA_ENTRIES.name: partitions},
        )
    except (DataCorrupt, DataUnavailable) as error:
        # Where more was lost, the units come before the entries that are checked against them.
        return f"the units that have entries of {year} are not known: {error.message}"
    missed = sorted(set(used.column("unit_id").to_pylist()).difference(units))
    if not missed:
        return None
    more = f" and {len(missed) - _SHOWN:,} more" if len(missed) > _SHOWN else ""
    return (
        f"{len(missed):,} units that have entries of {year} are not in the file: {', '.join(missed[:_SHOWN])}"
        f"{more}; their emissions stay in the whole, and belong to no unit above them"
    )

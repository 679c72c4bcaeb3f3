"""What a number is made of: entries, their factors, the lines of the files, and who uploaded those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from domain.carbon.observed import Observed
from domain.carbon.report_state import ReportState, types_with_changed_entries
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, FACTOR_VERSIONS, FACTORS, year_of
from domain.shared.error import InvalidInput
from domain.shared.packaged import packaged
from services.carbon.report import read_consistently
from services.carbon.service import CarbonService


@dataclass(frozen=True)
class Explanation:
    results: list[dict[str, Any]]
    """An entry that changed since has `entry_changed`, and none of its present values."""
    of_all: int
    """The number of results, shown or not."""
    notes: tuple[str, ...]
    """The notes of the year's report."""


def explain_results(
    carbon: CarbonService,
    year: int,
    *,
    unit: str | None = None,
    types: Sequence[str] = (),
    institution: str | None = None,
    entry: str | None = None,
    limit: int = 20,
) -> Explanation:
    """The heaviest results of a year, of a unit with the units below it, of types, or of one entry."""
    types = types or list(carbon.catalogue.types)
    partitions = [f"{name}|{year}" for name in types]
    if not set(carbon.lake.partitions(EMISSIONS.name)).intersection(partitions):
        raise _nothing(year)  # an empty home has no ledger to observe
    wanted = {
        "year": year,
        "unit": unit,
        "types": types,
        "entry": entry,
        "institution": institution,
        "limit": limit,
    }

    def read(seen: Observed, state: ReportState) -> Explanation:
        found = carbon.lake.query(
            packaged(__file__, "explained"),
            params=wanted | {"changed": types_with_changed_entries(carbon.catalogue, seen, year)},
            extra={"uploads": carbon.store.uploads.as_arrow()},
            partitions={
                EMISSIONS.name: partitions,
                DATA_ENTRIES.name: partitions,
                FACTOR_VERSIONS.name: [str(year)],
            },
        )
        if not found.num_rows:
            raise _nothing(year, state.notes)
        of_all = found.column("of_all")[0].as_py()
        return Explanation(found.drop_columns(["of_all"]).to_pylist(), of_all, state.notes)

    return read_consistently(carbon, year, read)


def _nothing(year: int, notes: Sequence[str] = ()) -> InvalidInput:
    return InvalidInput(
        "; ".join((f"no result of {year} matches", *notes)),
        reason_code="nothing_found",
        remedy=f"`perennial carbon report {year}`",
    )


def stale_factors(carbon: CarbonService, year: int | None = None) -> list[dict[str, Any]]:
    """The factors that the newest file of their type lacks, with what was calculated."""
    uploads = carbon.store.uploads.as_arrow()
    years = [str(year)] if year else carbon.lake.partitions(FACTORS.name)
    emissions = [p for p in carbon.lake.partitions(EMISSIONS.name) if year in (None, year_of(p))]
    found = carbon.lake.query(
        packaged(__file__, "stale"),
        params={"year": year},
        extra={"uploads": uploads},
        partitions={FACTORS.name: years, FACTOR_VERSIONS.name: years, EMISSIONS.name: emissions},
    )
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows

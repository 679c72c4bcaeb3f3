"""Where a number comes from: the entries behind it, the factor each was calculated with, the line of the file
that brought either, and who uploaded it when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from domain.carbon.observed import Observed
from domain.carbon.standing import Standing, moved_on
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, FACTOR_VERSIONS
from domain.shared.compute import packaged
from domain.shared.error import InvalidInput
from services.carbon.service import CarbonService
from services.carbon.steady import steadily

MOST = 1_000


@dataclass(frozen=True)
class Explained:
    results: list[dict[str, Any]]
    """Of an entry that changed since, `entry_changed`, and nothing of what it is now."""
    of_all: int
    """How many there are, shown or not."""
    notes: tuple[str, ...]
    """What must be known of the year."""


def explained(
    carbon: CarbonService,
    year: int,
    *,
    unit: str | None = None,
    data_entry_type: str | None = None,
    entry: str | None = None,
    limit: int = 20,
) -> Explained:
    """The heaviest results of a year, of a unit and those below it, of a type, or of one entry."""
    types = [data_entry_type] if data_entry_type else list(carbon.catalogue.types)
    for name in types:
        carbon.catalogue.type(name)
    partitions = [f"{name}|{year}" for name in types]
    if not set(carbon.lake.partitions(EMISSIONS.name)).intersection(partitions):
        raise _nothing(year)  # in an empty home too, where there is no ledger to observe yet
    wanted = {
        "year": year,
        "unit": unit,
        "types": types,
        "entry": entry,
        "limit": min(limit, MOST),
    }

    def read(seen: Observed, standing: Standing) -> Explained:
        found = carbon.lake.query(
            packaged(__file__, "explained"),
            params=wanted | {"moved_on": moved_on(carbon.catalogue, seen, year)},
            extra={"uploads": carbon.ledger.views()["carbon.upload"]()},
            partitions={
                EMISSIONS.name: partitions,
                DATA_ENTRIES.name: partitions,
                FACTOR_VERSIONS.name: [str(year)],
            },
        )
        if not found.num_rows:
            raise _nothing(year, standing.notes)
        of_all = found.column("of_all")[0].as_py()
        return Explained(found.drop_columns(["of_all"]).to_pylist(), of_all, standing.notes)

    return steadily(carbon, year, read)


def _nothing(year: int, notes: Sequence[str] = ()) -> InvalidInput:
    return InvalidInput(
        "; ".join((f"nothing of {year} fits", *notes)),
        reason_code="nothing_found",
        remedy=f"`perennial carbon report {year}`",
    )


def stale_factors(carbon: CarbonService, year: int | None = None) -> list[dict[str, Any]]:
    """Factors that the latest file of their types lacks. They are still used; how much, is told, and who
    brought them."""
    uploads = carbon.ledger.views()["carbon.upload"]()
    found = carbon.lake.query(packaged(__file__, "stale"), params={"year": year}, extra={"uploads": uploads})
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows

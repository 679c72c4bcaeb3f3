"""Checks of an upload against the units of its years: whose they are, and which of them have entries."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.observed import Observed
from domain.carbon.tables import DATA_ENTRIES
from domain.shared.error import InvalidInput
from domain.shared.packaged import packaged
from services.carbon.service import CarbonService

_SHOWN = 5


def units_of(carbon: CarbonService, year: int) -> frozenset[str]:
    """Return the units of a year, of all institutions."""
    return frozenset().union(*_units_by_institution(carbon, year).values())


def omitted_units(carbon: CarbonService, institution: str, rows: pa.Table) -> Iterator[str]:
    """A warning for each year in which a file of units lacks some that have entries."""
    for year, units in _by_year(rows):
        partitions = [p for p in carbon.lake.partitions(DATA_ENTRIES.name) if p.endswith(f"|{year}")]
        if not partitions:
            continue
        used = carbon.lake.query(
            packaged(__file__, "units_with_entries"),
            params={"year": year, "institution": institution},
            partitions={DATA_ENTRIES.name: partitions},
        )
        if omitted := sorted(set(used.column("unit_id").to_pylist()).difference(units)):
            more = f" and {len(omitted) - _SHOWN:,} more" if len(omitted) > _SHOWN else ""
            yield (
                f"{len(omitted):,} units that have entries of {year} are not in the file: "
                f"{', '.join(omitted[:_SHOWN])}{more}; their emissions count in the total, "
                "and in no unit above them"
            )


def units_of_others(carbon: CarbonService, institution: str, rows: pa.Table) -> Iterator[str]:
    """A warning for each institution whose units have entries of this one.

    One body may count for the units of another; a misspelt name would count them twice.
    """
    for year, used in _by_year(rows):
        for other, units in _units_by_institution(carbon, year).items():
            if other != institution and (theirs := used & units):
                yield (
                    f"{len(theirs):,} units of {year} in it are those of {other!r}: its entries are "
                    f"added to the entries that {other!r} itself has of them"
                )


def refuse_taken_units(carbon: CarbonService, name: str, institution: str, rows: pa.Table) -> None:
    """Raise if a unit of the file is another institution's: an entry names its unit alone."""
    for year, mine in _by_year(rows):
        for other, theirs in _units_by_institution(carbon, year, without=institution).items():
            if both := sorted(mine & theirs):
                raise InvalidInput(
                    f"{name}: {both[0]!r} of {year} is a unit of {other!r} already",
                    reason_code="unit_taken",
                    remedy="give it another unit_id, for example with the institution's name before it",
                )


def _units_by_institution(
    carbon: CarbonService, year: int, without: str | None = None
) -> dict[str, frozenset[str]]:
    """Of the newest uploads: the table may not have them yet."""
    uploads = Observed(uploads=carbon.store.uploads.current()).newest_uploads("units", "", year)
    staged = {
        upload.institution: dict(_by_year(carbon.staged_rows(upload)))
        for upload in uploads
        if upload.institution != without
    }
    return {institution: units.get(year, frozenset()) for institution, units in staged.items()}


def _by_year(rows: pa.Table) -> Iterator[tuple[int, frozenset[str]]]:
    for year in sorted(rows.column("year").unique().to_pylist()):
        of_year = rows.filter(pc.equal(rows.column("year"), year))
        yield year, frozenset(of_year.column("unit_id").to_pylist())

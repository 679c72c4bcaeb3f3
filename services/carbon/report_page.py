"""The page of a report, filled from the lake."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from domain.carbon.observed import Observed
from domain.carbon.standing import Standing, moved_on, standing
from domain.carbon.tables import DATA_ENTRIES, FACTORS, REPORTS, UNITS
from domain.shared.compute import packaged
from services.carbon.page import Lock, page, page_data
from services.carbon.report import Report, report_of, report_rows
from services.carbon.service import CarbonService
from services.carbon.steady import steadily


def report_page(
    carbon: CarbonService, year: int, unit: str | None = None, as_of: datetime | None = None
) -> str:
    """The HTML of a report, as it is or as it was. What factors were used is told of the present only: older
    results are not kept as long as older reports."""
    if as_of is not None:
        report = report_of(carbon, year, unit, as_of)
        return _page(carbon, report, carbon.observe(), Standing(year), as_of)

    def read(seen: Observed, standing: Standing) -> str:
        report = report_rows(carbon, year, unit, notes=standing.notes)
        return _page(carbon, report, seen, standing)

    return steadily(carbon, year, read)


def _page(
    carbon: CarbonService, report: Report, seen: Observed, standing: Standing, as_of: datetime | None = None
) -> str:
    year, unit = report.year, report.unit
    units = carbon.units(year, as_of).to_pylist()
    lock = carbon.ledger.year_locks.held().get(year)
    tops = [u["name"] for u in units if u["parent_id"] is None]

    def rows(name: str, **more: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = carbon.lake.query(
            packaged(__file__, name), params={"year": year, "unit": unit} | more, as_of=as_of
        ).to_pylist()
        return found

    years = rows("page_years" if unit is None else "page_years_of_unit")
    data = page_data(
        carbon.catalogue,
        institution=unit or (tops[0] if len(tops) == 1 else "All units"),
        moment=carbon.clock(),
        units=units,
        years=years,
        old_years=_old(carbon, seen, {row["year"] for row in years} - {year}) if as_of is None else (),
        results=rows("page_results"),
        factors=rows("page_factors") if as_of is None else (),
        files=_files(carbon, seen, year) if as_of is None else (),
        unmatched=rows("page_unmatched", moved_on=moved_on(carbon.catalogue, seen, year))
        if as_of is None
        else (),
        standing=standing,
        lock=None if lock is None else Lock(lock.reason, lock.locked_by, lock.locked_at),
        as_of=as_of,
        versions={REPORTS.name: str(seen.state(REPORTS.table, str(year)).version)} if as_of is None else {},
    )
    return page(report, data)


def _old(carbon: CarbonService, seen: Observed, years: set[int]) -> list[int]:
    """Those that have something coming or that another hand altered. What a lock keeps as it was calculated,
    is what people compare with."""
    verdicts = carbon.plan_of(seen).verdicts
    found = [standing(carbon.catalogue, seen, verdicts, year) for year in sorted(years)]
    return [one.year for one in found if one.altered or not (one.current or one.locked is not None)]


def _files(carbon: CarbonService, seen: Observed, year: int) -> list[dict[str, Any]]:
    """The uploads that are in the tables now, as these recorded it: units, factors, data by type. Of a file
    of factors that came more than once, the last time."""
    places = [(UNITS.table, str(year)), (FACTORS.table, str(year))]
    places += [(DATA_ENTRIES.table, f"{name}|{year}") for name in carbon.catalogue.types]
    told = {place: seen.state(*place).inputs.get("uploads", "") for place in places}
    numbers = {int(number) for words in told.values() for number in words.split(",") if number}
    uploads = {u.id: u for u in carbon.ledger.uploads.find(ids=numbers)}
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for place in places:
        for number in seen.state(*place).inputs.get("uploads", "").split(","):
            if number and (one := uploads.get(int(number))) is not None:
                found[(*one.place, one.sha256)] = {
                    "kind": one.kind,
                    "data_entry_type": one.topic,
                    "file": one.name,
                    "by": one.uploaded_by,
                    "at": one.moment,
                    "rows": one.rows,
                    "taken": one.taken,
                }
    return list(found.values())

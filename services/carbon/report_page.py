"""The page of a report, filled from the lake: as the report is, or as it was."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from domain.carbon.observed import Observed
from domain.carbon.report_state import ReportState, report_state
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, FACTORS, REPORT_MODULES, REPORTS, UNITS, year_of
from domain.shared.packaged import packaged
from services.carbon.report import Report, present_report, read_consistently, report_of
from services.carbon.report_html import render
from services.carbon.report_view import PageContext, PageRows, Row, view_of
from services.carbon.service import CarbonService
from services.carbon.without_factor import find_without_factor


def report_page(
    carbon: CarbonService, year: int, unit: str | None = None, as_of: datetime | None = None
) -> str:
    """The HTML of a report.

    A past report names neither factors nor files: older results are not kept as long as older reports.
    """
    if as_of is not None:
        return _past(carbon, report_of(carbon, year, unit, as_of), as_of)

    def read(seen: Observed, state: ReportState) -> str:
        return _present(carbon, present_report(carbon, year, unit, seen, state), seen, state)

    return read_consistently(carbon, year, read)


def _past(carbon: CarbonService, report: Report, as_of: datetime) -> str:
    rows = PageRows(
        units=carbon.units(report.year, as_of).to_pylist(),
        years=_rows(carbon, "page_years", report, as_of=as_of),
        results=_rows(carbon, "page_results", report, as_of=as_of),
    )
    return _rendered(carbon, report, rows, as_of=as_of)


def _present(carbon: CarbonService, report: Report, seen: Observed, state: ReportState) -> str:
    year = report.year
    missing = find_without_factor(carbon, [year], unit=report.unit, seen=seen)
    rows = PageRows(
        units=carbon.units(year).to_pylist(),
        years=_rows(carbon, "page_years", report),
        results=_rows(carbon, "page_results", report),
        factors=_rows(carbon, "page_factors", report),
        files=_files(carbon, seen, year),
        unmatched=[row | {"kinds": missing.of_all} for row in missing.kinds],
    )
    return _rendered(
        carbon,
        report,
        rows,
        state=state,
        lock=carbon.store.year_locks.held().get(year),
        outdated_years=_outdated(carbon, seen, {row["year"] for row in rows.years} - {year}),
        versions={REPORTS.name: str(seen.state(REPORTS.table, str(year)).version)},
    )


def _rendered(carbon: CarbonService, report: Report, rows: PageRows, **known: Any) -> str:
    tops = [unit["name"] for unit in rows.units if unit["parent_id"] is None]
    institution = report.unit or (tops[0] if len(tops) == 1 else "All units")
    context = PageContext(institution=institution, made_at=carbon.clock(), **known)
    return render(view_of(carbon.catalogue, report, rows, context))


def _rows(
    carbon: CarbonService, name: str, report: Report, as_of: datetime | None = None, **more: Any
) -> list[Row]:
    found: list[Row] = carbon.lake.query(
        packaged(__file__, name),
        params={"year": report.year, "unit": report.unit} | more,
        as_of=as_of,
        partitions=_partitions(carbon, report.year),
    ).to_pylist()
    return found


def _partitions(carbon: CarbonService, year: int) -> dict[str, list[str]]:
    """The year's partitions of each table that the page reads a single year of."""
    types, modules = carbon.catalogue.types, [module.name for module in carbon.catalogue.modules]
    found = {table.name: [str(year)] for table in (UNITS, FACTORS)}
    for table, names in ((DATA_ENTRIES, types), (EMISSIONS, types), (REPORT_MODULES, modules)):
        present = {p for p in carbon.lake.partitions(table.name) if year_of(p) == year}
        found[table.name] = sorted(present | {f"{name}|{year}" for name in names})
    return found


def _outdated(carbon: CarbonService, seen: Observed, years: set[int]) -> frozenset[int]:
    """Years that were altered, or for which work is due. People compare with a locked year as it is."""
    verdicts = carbon.plan_of(seen).verdicts
    found = [report_state(carbon.catalogue, seen, verdicts, year) for year in years]
    return frozenset(one.year for one in found if one.altered or not (one.current or one.locked is not None))


def _files(carbon: CarbonService, seen: Observed, year: int) -> list[Row]:
    """The uploads in the year's tables: units, factors, data by type. Of the same file the last upload."""
    partitions = [(UNITS.table, str(year)), (FACTORS.table, str(year))]
    partitions += [(DATA_ENTRIES.table, f"{name}|{year}") for name in carbon.catalogue.types]

    recorded = [seen.state(*partition).inputs.get("uploads", "") for partition in partitions]
    numbers = [int(number) for listed in recorded for number in listed.split(",") if number]
    uploads = {upload.id: upload for upload in carbon.store.uploads.find(ids=set(numbers))}
    found = {
        (*upload.scope, upload.sha256): {
            "kind": upload.kind,
            "data_entry_type": upload.topic,
            "file": upload.name,
            "by": upload.uploaded_by,
            "at": upload.moment,
            "rows": upload.rows,
            "taken": upload.taken,
        }
        for number in numbers
        if (upload := uploads.get(number)) is not None
    }
    return list(found.values())

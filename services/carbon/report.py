"""A report as people get it: tonnes by module and scope, of a unit or of all, and what must be known."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from domain.carbon.observed import Observed
from domain.carbon.standing import Standing
from domain.carbon.tables import REPORTS
from domain.shared.error import InvalidInput
from services.carbon.service import CarbonService
from services.carbon.steady import steadily

TONNE = 1e9
"""Milligrams."""
SHOWN = 5
"""Names in a note."""


@dataclass(frozen=True)
class Report:
    year: int
    unit: str | None
    rows: Sequence[dict[str, Any]]
    """Of the unit with all below it, or of everybody: module, scope, mg, results, unmatched."""
    units: Sequence[dict[str, Any]]
    """The rows of `carbon_reports` with names, for CSV."""
    notes: tuple[str, ...]

    @property
    def total_mg(self) -> int:
        return sum(row["mg"] for row in self.rows)

    def as_json(self) -> dict[str, Any]:
        return {
            "year": self.year,
            "unit": self.unit,
            "total_mg": self.total_mg,
            "total_tonnes": self.total_mg / TONNE,
            "rows": list(self.rows),
            "notes": list(self.notes),
        }

    def table(self) -> list[list[Any]]:
        """One line per module, and their sum."""
        modules = sorted({row["module"] for row in self.rows})
        lines = [[m, *self._line([r for r in self.rows if r["module"] == m])] for m in modules]
        return [*lines, ["all", *self._line(self.rows)]]

    @staticmethod
    def _line(rows: Sequence[dict[str, Any]]) -> list[Any]:
        by_scope = [sum(r["mg"] for r in rows if r["scope"] == scope) for scope in (1, 2, 3)]
        tonnes = [f"{mg / TONNE:,.3f}" for mg in (*by_scope, sum(by_scope))]
        return [*tonnes, sum(r["unmatched"] for r in rows)]

    def as_csv(self) -> str:
        """Every unit, module and scope, at the end in tonnes too, exactly. What a spreadsheet would take for
        a formula is made a text."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        names = list(self.units[0]) if self.units else []
        writer.writerow([*names, *(("own_tonnes", "total_tonnes") if names else ())])
        for row in self.units:
            tonnes = (f"{Decimal(row[mg]).scaleb(-9):f}" for mg in ("own_mg", "total_mg"))
            writer.writerow([*(harmless(row[name]) for name in names), *tonnes])
        return out.getvalue()


def harmless(value: Any) -> Any:
    """A cell that no spreadsheet runs, not even one that trims it."""
    if isinstance(value, str) and value.lstrip(" \u00a0")[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value


def report_of(
    carbon: CarbonService, year: int, unit: str | None = None, as_of: datetime | None = None
) -> Report:
    if as_of is not None:
        return report_rows(carbon, year, unit, as_of, notes=(f"as it was on {_utc(as_of)}",))

    if str(year) not in carbon.lake.partitions(REPORTS.name):
        raise no_report(year)  # in an empty home too, where there is no ledger to observe yet

    def read(_: Observed, standing: Standing) -> Report:
        return report_rows(carbon, year, unit, notes=standing.notes)

    return steadily(carbon, year, read)


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def no_report(year: int, as_of: datetime | None = None) -> InvalidInput:
    return InvalidInput(
        f"there is no report of {year}" + (f" as of {_utc(as_of)}" if as_of else ""),
        reason_code="no_report",
        remedy="name a later moment, if there is one by now"
        if as_of
        else "upload units, factors and data of the year; `perennial carbon upload --help`",
    )


def report_rows(
    carbon: CarbonService,
    year: int,
    unit: str | None = None,
    as_of: datetime | None = None,
    *,
    notes: tuple[str, ...],
) -> Report:
    """The rows as they are read now. `notes` is what was known of them before."""
    found = carbon.rows(REPORTS, [str(year)], as_of=as_of).to_pylist()
    if not found:
        raise no_report(year, as_of)
    units = {u["unit_id"]: u for u in carbon.units(year, as_of).to_pylist()}
    if unit is not None and unit not in units and all(r["unit_id"] != unit for r in found):
        raise InvalidInput(f"{unit!r} is no unit of {year}", reason_code="unknown_unit_id")
    # A unit's total has everything below it; everybody's is the sum of what each has alone.
    chosen = [r for r in found if unit is None or r["unit_id"] == unit]
    kind = "own" if unit is None else "total"
    outside = [] if unit is not None else [r for r in found if r["unit_id"] not in units and r["own_results"]]
    sums: dict[tuple[str, int], dict[str, Any]] = {}
    for row in chosen:
        place = sums.setdefault(
            (row["module"], row["scope"]),
            {"module": row["module"], "scope": row["scope"], "mg": 0, "results": 0, "unmatched": 0},
        )
        place["mg"] += row[f"{kind}_mg"]
        place["results"] += row[f"{kind}_results"]
        place["unmatched"] += row[f"{kind}_unmatched"]
    return Report(
        year=year,
        unit=unit,
        rows=[sums[place] for place in sorted(sums)],
        units=[{"name": units.get(r["unit_id"], {}).get("name", ""), **r} for r in found],
        notes=(*notes, *_outside(outside, year)),
    )


def _outside(rows: Sequence[dict[str, Any]], year: int) -> Iterator[str]:
    """Of units that no file of units names, though somebody entered data for them."""
    names = sorted({row["unit_id"] for row in rows})
    if names:
        more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
        yield (
            f"not in the tree of {year}: {', '.join(names[:SHOWN])}{more}; their "
            f"{sum(row['own_mg'] for row in rows) / TONNE:,.3f} t are in the whole, and in no unit above them"
        )


def difference(old: Report, new: Report) -> list[dict[str, Any]]:
    """Module by module, and at the end all of them."""
    modules = sorted({row["module"] for row in (*old.rows, *new.rows)})
    weights = [
        (name, *(sum(r["mg"] for r in report.rows if r["module"] == name) for report in (old, new)))
        for name in modules
    ]
    weights.append(("all", old.total_mg, new.total_mg))
    return [
        {
            "module": name,
            "before_mg": before,
            "after_mg": after,
            "change_mg": after - before,
            "percent": (after / before - 1) * 100 if before else None,
        }
        for name, before, after in weights
    ]

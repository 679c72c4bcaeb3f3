"""A report: tonnes by module and scope, of one unit or of all, and the notes that a reader must know."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar

from domain.carbon.fallbacks import Fallback, fallback_note
from domain.carbon.observed import Observed
from domain.carbon.report_state import ReportState, report_state
from domain.carbon.tables import REPORTS, TABLES, year_of
from domain.shared.error import InvalidInput
from services.carbon.fallbacks import fallbacks_of_report
from services.carbon.service import CarbonService

Row = Mapping[str, Any]

TONNE = 1e9
"""Milligrams."""
SHOWN = 5
"""Units named in a note."""
AT_MOST = 3
"""Reads that a commit may spoil. A page takes a second or two, the pipeline of an edit longer."""

Found = TypeVar("Found")
Read = Callable[[Observed, ReportState], Found]


@dataclass(frozen=True)
class Report:
    year: int
    unit: str | None
    rows: Sequence[Row]
    """module, scope, mg, results, unmatched: of the unit with all units below it, or of all units."""
    units: Sequence[Row]
    """The rows of `carbon_reports` with the names of the units, for CSV."""
    notes: tuple[str, ...]
    fallbacks: tuple[Fallback, ...] = ()
    """The heaviest first; of a past report none are known."""

    @property
    def results(self) -> int:
        return sum(row["results"] for row in self.rows)

    @property
    def fallback_note(self) -> str:
        return fallback_note(self.fallbacks, self.results, self.total_mg)

    @property
    def gaps(self) -> tuple[str, ...]:
        """What the factors leave open, for those who see no table."""
        unmatched = sum(row["unmatched"] for row in self.rows)
        missing = (
            f"{unmatched:,} of {self.results:,} results have no factor, and no mass" if unmatched else ""
        )
        return tuple(filter(None, (missing, self.fallback_note)))

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
            "fallbacks": [one.as_json() for one in self.fallbacks],
            "notes": list(self.notes),
        }

    def table(self) -> list[list[Any]]:
        """A line per module, and their sum."""
        modules = sorted({row["module"] for row in self.rows})
        lines = [[name, *_line([row for row in self.rows if row["module"] == name])] for name in modules]
        return [*lines, ["all", *_line(self.rows)]]

    def as_csv(self) -> str:
        """A line per unit, module and scope, with the exact tonnes in the last columns."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        names = list(self.units[0]) if self.units else []
        writer.writerow([*names, *(("own_tonnes", "total_tonnes") if names else ())])
        for row in self.units:
            tonnes = (f"{Decimal(row[mg]).scaleb(-9):f}" for mg in ("own_mg", "total_mg"))
            writer.writerow([*(harmless(row[name]) for name in names), *tonnes])
        return out.getvalue()


def _line(rows: Sequence[Row]) -> list[Any]:
    by_scope = [sum(row["mg"] for row in rows if row["scope"] == scope) for scope in (1, 2, 3)]
    tonnes = [f"{mg / TONNE:,.3f}" for mg in (*by_scope, sum(by_scope))]
    return [*tonnes, sum(row["unmatched"] for row in rows)]


def harmless(value: Any) -> Any:
    """The value, made a text where a spreadsheet would run it as a formula, even after trimming it."""
    if isinstance(value, str) and value.lstrip(" \u00a0")[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value


def read_consistently(carbon: CarbonService, year: int, read: Read[Found]) -> Found:
    """The result of `read`, given what was observed before it; read again if the year changed meanwhile.

    Outdated numbers without a note, or numbers of two moments, are never shown as if they were current.
    """
    for _ in range(AT_MOST):
        seen = carbon.observe()
        found = read(seen, report_state_of(carbon, seen, year))
        if _moment(Observed(states=carbon.states(TABLES)), year) == _moment(seen, year):
            return found
    seen = carbon.observe()
    return read(seen, replace(report_state_of(carbon, seen, year), unstable=True))


def report_state_of(carbon: CarbonService, seen: Observed, year: int) -> ReportState:
    return report_state(carbon.catalogue, seen, carbon.plan_of(seen).verdicts, year)


def _moment(seen: Observed, year: int) -> dict[tuple[str, str], tuple[object, object]]:
    """The versions of the year's partitions and their records: between the two a commit is not complete."""
    return {
        partition: (state.version, state.recorded)
        for partition, state in seen.states.items()
        if year_of(partition[1]) == year
    }


def report_of(
    carbon: CarbonService, year: int, unit: str | None = None, as_of: datetime | None = None
) -> Report:
    """The report of a year, now or as of a past moment."""
    if as_of is not None:
        return report_rows(carbon, year, unit, as_of, notes=(f"as it was on {_utc(as_of)}",))

    if str(year) not in carbon.lake.partitions(REPORTS.name):
        raise _no_report(year)  # an empty home has no ledger to observe

    return read_consistently(
        carbon, year, lambda seen, state: present_report(carbon, year, unit, seen, state)
    )


def present_report(
    carbon: CarbonService, year: int, unit: str | None, seen: Observed, state: ReportState
) -> Report:
    """The report as it is, with the fallback factors it was calculated with."""
    report = report_rows(carbon, year, unit, notes=state.notes)
    return replace(report, fallbacks=fallbacks_of_report(carbon, year, unit, seen))


def report_rows(
    carbon: CarbonService,
    year: int,
    unit: str | None = None,
    as_of: datetime | None = None,
    *,
    notes: tuple[str, ...],
) -> Report:
    """The report as the lake has it at this moment, with notes that were made before it was read."""
    found = carbon.rows(REPORTS, [str(year)], as_of=as_of).to_pylist()
    if not found:
        raise _no_report(year, as_of)
    names = {row["unit_id"]: row["name"] for row in carbon.units(year, as_of).to_pylist()}
    if unit is not None and unit not in names and all(row["unit_id"] != unit for row in found):
        raise InvalidInput(f"{unit!r} is no unit of {year}", reason_code="unknown_unit_id")
    # A unit's total includes the units below it; the total of all units is the sum of what each has alone.
    chosen = found if unit is None else [row for row in found if row["unit_id"] == unit]
    kind = "own" if unit is None else "total"
    sums: dict[tuple[str, int], dict[str, int]] = defaultdict(lambda: {"mg": 0, "results": 0, "unmatched": 0})
    for row in chosen:
        of = sums[row["module"], row["scope"]]
        for name in of:
            of[name] += row[f"{kind}_{name}"]
    outside = (
        []
        if unit is not None
        else [row for row in found if row["unit_id"] not in names and row["own_results"]]
    )
    return Report(
        year=year,
        unit=unit,
        rows=[{"module": module, "scope": scope, **of} for (module, scope), of in sorted(sums.items())],
        units=[{"name": names.get(row["unit_id"], ""), **row} for row in found],
        notes=(*notes, *_outside(outside, year)),
    )


def _no_report(year: int, as_of: datetime | None = None) -> InvalidInput:
    if as_of is None:
        remedy = "upload units, factors and data of the year; `perennial carbon upload --help`"
        return InvalidInput(f"there is no report of {year}", reason_code="no_report", remedy=remedy)
    return InvalidInput(
        f"there is no report of {year} as of {_utc(as_of)}",
        reason_code="no_report",
        remedy="name a later moment",
    )


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _outside(rows: Sequence[Row], year: int) -> Iterator[str]:
    """A note about units that have entries, and that no file of units names."""
    names = sorted({row["unit_id"] for row in rows})
    if names:
        more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
        tonnes = sum(row["own_mg"] for row in rows) / TONNE
        yield (
            f"not in the tree of {year}: {', '.join(names[:SHOWN])}{more}; their {tonnes:,.3f} t count in "
            "the total, and in no unit above them"
        )


def difference(old: Report, new: Report) -> list[dict[str, Any]]:
    """The change of each module from one report to another, and of all together."""

    def masses(report: Report) -> dict[str, int]:
        sums: dict[str, int] = defaultdict(int)
        for row in report.rows:
            sums[row["module"]] += row["mg"]
        return sums

    before, after = masses(old), masses(new)
    pairs = [(name, before.get(name, 0), after.get(name, 0)) for name in sorted({*before, *after})]
    pairs.append(("all", old.total_mg, new.total_mg))
    return [
        {
            "module": name,
            "before_mg": one,
            "after_mg": other,
            "change_mg": other - one,
            "percent": (other / one - 1) * 100 if one else None,
        }
        for name, one, other in pairs
    ]

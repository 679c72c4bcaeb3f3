"""What a file would change, without changing anything: factors before and after, and each type's tonnes.

Both sides are calculated here and now, from the same entries and factors but for those of the file: what the
lake holds of emissions may be older, and its distance from what is to come is not the file's doing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.catalogue import EntryType
from domain.carbon.emissions import emissions
from domain.carbon.factors import Origin, YearOfFactors, changed_types, merged
from domain.carbon.observed import Observed
from domain.carbon.plan import year_of
from domain.carbon.reports import report_rows
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, FACTOR_VERSIONS
from domain.shared.compute import packaged, query
from domain.shared.table import ABSENT
from services.carbon.calculate import sums_of
from services.carbon.service import CarbonService
from services.carbon.steady import standing_of
from services.carbon.upload import File, checked

_NOBODY = Origin(job_id=0, file="", at=datetime(1970, 1, 1, tzinfo=UTC))


@dataclass(frozen=True)
class Effect:
    """What a type of a year weighs without the file and with it."""

    year: int
    data_entry_type: str
    before_mg: int
    after_mg: int
    unmatched_before: int
    unmatched_after: int

    @property
    def percent(self) -> float | None:
        return (self.after_mg / self.before_mg - 1) * 100 if self.before_mg else None

    @property
    def sentence(self) -> str:
        tonnes = (self.after_mg - self.before_mg) / 1e9
        verb = "raises" if tonnes > 0 else "lowers" if tonnes < 0 else "leaves"
        if not tonnes:
            return f"leaves {self.data_entry_type} {self.year} as it is"
        share = f" by {abs(self.percent):.1f} %" if self.percent is not None else ""
        return f"{verb} {self.data_entry_type} {self.year}{share}, {abs(tonnes):,.3f} t"

    def as_json(self) -> dict[str, Any]:
        return {
            "year": self.year,
            "data_entry_type": self.data_entry_type,
            "before_tonnes": self.before_mg / 1e9,
            "after_tonnes": self.after_mg / 1e9,
            "percent": self.percent,
            "unmatched_before": self.unmatched_before,
            "unmatched_after": self.unmatched_after,
        }


@dataclass(frozen=True)
class Moved:
    """A unit that comes to something else, with all below it, in the file's tree."""

    year: int
    unit_id: str
    before_mg: int
    after_mg: int

    @property
    def sentence(self) -> str:
        return (
            f"brings {self.unit_id} {self.year}, with all below it, from {self.before_mg / 1e9:,.3f} "
            f"to {self.after_mg / 1e9:,.3f} t"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "year": self.year,
            "unit_id": self.unit_id,
            "before_tonnes": self.before_mg / 1e9,
            "after_tonnes": self.after_mg / 1e9,
        }


@dataclass(frozen=True)
class WhatIf:
    rows: int
    factors: list[dict[str, Any]]
    """Of a factor file: the factors that would be new, changed or stale."""
    effects: list[Effect]
    units: list[Moved] = field(default_factory=list)
    """Of a file of units: those whose sums change, the largest change first."""
    notes: tuple[str, ...] = ()
    """What is in neither side, or forbids the file: what waits, what the report lacks, a locked year."""

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "factors": self.factors,
            "effects": [e.as_json() for e in self.effects],
            "units": [u.as_json() for u in self.units],
            "notes": list(self.notes),
        }


def what_if(carbon: CarbonService, file: File, *, accept_valid: bool = False) -> WhatIf:
    parsed = checked(carbon, file, accept_valid=accept_valid)
    factors: list[dict[str, Any]] = []
    effects: list[Effect] = []
    units: list[Moved] = []
    seen = carbon.observe()
    notes: list[str] = []
    for year in parsed.years:
        notes += _notes(carbon, seen, year)
        rows = parsed.frame.filter(pc.equal(parsed.frame.column("year"), year))
        if file.kind == "factors":
            changes, found = _of_factors(carbon, year, rows)
            factors += changes
            effects += found
        elif file.kind == "data":
            effects.append(_of_entries(carbon, year, rows, file))
        else:
            units += _of_units(carbon, year, rows, file)
    if parsed.problem_count:
        notes.insert(0, f"{parsed.problem_count:,} problems; first {parsed.problems[0]}")
    return WhatIf(parsed.rows, factors, effects, units, (*notes, *parsed.warnings))


def _notes(carbon: CarbonService, seen: Observed, year: int) -> Iterator[str]:
    standing = standing_of(carbon, seen, year)
    if standing.locked is not None:
        yield f"{year} is locked: {standing.locked}; the file would be refused"
    if not standing.current:
        yield f"the report of {year} is not what these numbers begin with"
        yield from (str(line) for line in standing.lines)


def _of_factors(
    carbon: CarbonService, year: int, rows: pa.Table
) -> tuple[list[dict[str, Any]], list[Effect]]:
    known = YearOfFactors(carbon.factors(year), carbon.rows(FACTOR_VERSIONS, [str(year)]))
    after = merged(year, known, rows, _NOBODY)
    changes = query(
        packaged(__file__, "factor_changes"), {"before": known.factors, "after": after.factors}
    ).to_pylist()
    effects = []
    for name in changed_types(known.factors, after.factors):
        if carbon.lake.version(DATA_ENTRIES.name, f"{name}|{year}") == ABSENT:
            continue
        entries = carbon.rows(DATA_ENTRIES, [f"{name}|{year}"])
        sides = (entries, known.factors), (entries, after.factors)
        effects.append(_effect(carbon, year, name, *sides))
    return changes, effects


def _of_entries(carbon: CarbonService, year: int, rows: pa.Table, file: File) -> Effect:
    """The file's rows in the place of those of the same institution and source."""
    name = rows.column("data_entry_type")[0].as_py()
    there = carbon.rows(DATA_ENTRIES, [f"{name}|{year}"])
    others = query(
        packaged(__file__, "other_entries"),
        {"there": there},
        {"institution": file.institution, "source": file.source},
    )
    entries = pa.concat_tables([others, rows.select(others.column_names).cast(others.schema)])
    factors = carbon.factors(year)
    return _effect(carbon, year, name, (there, factors), (entries, factors))


def _of_units(carbon: CarbonService, year: int, rows: pa.Table, file: File) -> list[Moved]:
    """The file's tree in the place of the institution's, with the results there are: no tree changes them."""
    results = [p for p in carbon.lake.partitions(EMISSIONS.name) if year_of(p) == year]
    if not results:
        return []
    there = carbon.units(year)
    others = there.filter(pc.not_equal(there.column("institution"), file.institution))
    tree = ["unit_id", "parent_id"]
    sides = {
        "before": there.select(tree),
        "after": pa.concat_tables([others.select(tree), rows.select(tree)]),
    }
    sums = sums_of(carbon, results)
    reports = {side: report_rows(carbon.catalogue, year, sums, units) for side, units in sides.items()}
    moved = query(packaged(__file__, "units_moved"), reports).to_pylist()
    return [Moved(year, row["unit_id"], row["before_mg"], row["after_mg"]) for row in moved]


_Side = tuple[pa.Table, pa.Table]
"""Entries and factors."""


def _effect(carbon: CarbonService, year: int, name: str, without: _Side, with_it: _Side) -> Effect:
    before, after = (_weight(carbon.catalogue.type(name), *side) for side in (without, with_it))
    return Effect(year, name, before["mg"], after["mg"], before["unmatched"], after["unmatched"])


def _weight(kind: EntryType, entries: pa.Table, factors: pa.Table) -> dict[str, Any]:
    sql = packaged(__file__, "weight").format(emissions="frame", where="true")
    [weight] = query(sql, {"frame": emissions(kind, entries, factors)}).to_pylist()
    found: dict[str, Any] = weight
    return found

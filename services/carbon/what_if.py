"""What a file would change, without changing anything: factors before and after, tonnes of each type or unit.

Both sides are calculated here, from the same entries and factors except those of the file. The emissions in
the lake may be older, and that difference is not the file's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.emissions import emissions
from domain.carbon.factors import Origin, YearOfFactors, changed_types, merged
from domain.carbon.observed import Observed
from domain.carbon.reports import report_rows
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, FACTOR_VERSIONS, year_of
from domain.shared.compute import query
from domain.shared.packaged import packaged
from domain.shared.table import ABSENT
from domain.shared.tabular.problems import count_of_problems
from services.carbon.calculate import sums_of
from services.carbon.fallbacks import gaps_of_file
from services.carbon.replacements import Replacement, replacements
from services.carbon.report import report_state_of
from services.carbon.service import CarbonService
from services.carbon.upload import accepted
from services.carbon.uploaded_file import File, check_file

_NOBODY = Origin(job_id=0, file="", at=datetime(1970, 1, 1, tzinfo=UTC))
_Inputs = tuple[pa.Table, pa.Table]
"""Entries and factors."""


@dataclass(frozen=True)
class Effect:
    """The mass of a type, or of a unit with all units below it, without the file and with it."""

    year: int
    of: Literal["data_entry_type", "unit_id"]
    name: str
    before_mg: int
    after_mg: int
    unmatched: Mapping[str, int] = field(default_factory=dict)
    """Of a type: its results without a factor, before and after."""

    @property
    def percent(self) -> float | None:
        return (self.after_mg / self.before_mg - 1) * 100 if self.before_mg else None

    @property
    def sentence(self) -> str:
        tonnes = (self.after_mg - self.before_mg) / 1e9
        if not tonnes:
            return f"leaves {self.name} {self.year} as it is"
        share = f" by {abs(self.percent):.1f} %" if self.percent is not None else ""
        verb = "raises" if tonnes > 0 else "lowers"
        return f"{verb} {self.name} {self.year}{share}, {abs(tonnes):,.3f} t"

    def as_json(self) -> dict[str, Any]:
        return {
            "year": self.year,
            self.of: self.name,
            "before_tonnes": self.before_mg / 1e9,
            "after_tonnes": self.after_mg / 1e9,
            "percent": self.percent,
            **self.unmatched,
        }


@dataclass(frozen=True)
class WhatIf:
    rows: int
    factors: list[dict[str, Any]]
    """Of a factor file: the factors that would be new, changed or stale."""
    effects: list[Effect]
    units: list[Effect]
    """Of a file of units: the largest change first."""
    replaced: tuple[Replacement, ...]
    """The uploads that would count no more."""
    notes: tuple[str, ...]
    """What neither side includes, what the report lacks, a locked year, the file's warnings."""

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "factors": self.factors,
            "effects": [effect.as_json() for effect in self.effects],
            "units": [effect.as_json() for effect in self.units],
            "replaced": [one.as_json() for one in self.replaced],
            "notes": list(self.notes),
        }


def what_if(
    carbon: CarbonService, file: File, *, accept_valid: bool = False, may_shrink: bool = False
) -> WhatIf:
    """Calculate what an upload of the file would change."""
    parsed = check_file(carbon, file, accept_valid=accept_valid)
    factors: list[dict[str, Any]] = []
    effects: list[Effect] = []
    units: list[Effect] = []
    seen = carbon.observe()
    count = parsed.problem_count
    notes = [f"{count_of_problems(count)}; first {parsed.problems[0]}"] if count else []
    for year in parsed.years:
        notes += _notes(carbon, seen, year)
        rows = parsed.frame.filter(pc.equal(parsed.frame.column("year"), year))
        if file.kind == "factors":
            known = YearOfFactors(carbon.factors(year), carbon.rows(FACTOR_VERSIONS, [str(year)]))
            after = merged(year, known, rows, _NOBODY).factors
            tables = {"before": known.factors, "after": after}
            factors.extend(query(packaged(__file__, "factor_changes"), tables).to_pylist())
            effects.extend(_of_factors(carbon, year, known.factors, after))
        elif file.kind == "data":
            effects.append(_of_entries(carbon, year, rows, file))
        else:
            units.extend(_of_units(carbon, year, rows, file))
    wanted = accepted(file, "", parsed)
    replaced = tuple(replacements(carbon, wanted, parsed.frame))
    if any(one.shrinks for one in replaced) and not may_shrink:
        notes.append(
            "it has less than half of the rows that it replaces: it would be refused without `--replace`"
        )
    if file.kind == "data":
        notes += [note for gaps in gaps_of_file(carbon, wanted.topic, parsed.frame) for note in gaps.notes]
    return WhatIf(parsed.rows, factors, effects, units, replaced, (*notes, *parsed.warnings))


def _notes(carbon: CarbonService, seen: Observed, year: int) -> Iterator[str]:
    state = report_state_of(carbon, seen, year)
    if state.locked is not None:
        yield f"{year} is locked: {state.locked}; the file would be refused"
    if not state.current:
        yield f"the report of {year} is not what these numbers begin with"
        yield from (str(line) for line in state.issues)


def _of_factors(carbon: CarbonService, year: int, before: pa.Table, after: pa.Table) -> Iterator[Effect]:
    """The effect on the types that have entries."""
    for name in changed_types(before, after):
        if carbon.lake.version(DATA_ENTRIES.name, f"{name}|{year}") != ABSENT:
            entries = carbon.rows(DATA_ENTRIES, [f"{name}|{year}"])
            yield _effect(carbon, year, name, (entries, before), (entries, after))


def _of_entries(carbon: CarbonService, year: int, rows: pa.Table, file: File) -> Effect:
    """The effect of the file's rows in place of those of the same institution and source."""
    name = rows.column("data_entry_type")[0].as_py()
    present = carbon.rows(DATA_ENTRIES, [f"{name}|{year}"])
    scope = {"institution": file.institution, "source": file.source}
    others = query(packaged(__file__, "other_entries"), {"present": present}, scope)
    entries = pa.concat_tables([others, rows.select(others.column_names).cast(others.schema)])
    factors = carbon.factors(year)
    return _effect(carbon, year, name, (present, factors), (entries, factors))


def _effect(carbon: CarbonService, year: int, name: str, before: _Inputs, after: _Inputs) -> Effect:
    kind = carbon.catalogue.type(name)
    tables = {"before": emissions(kind, *before), "after": emissions(kind, *after)}
    [sums] = query(packaged(__file__, "type_effect"), tables).to_pylist()
    return Effect(year, "data_entry_type", name, sums.pop("before_mg"), sums.pop("after_mg"), sums)


def _of_units(carbon: CarbonService, year: int, rows: pa.Table, file: File) -> Iterator[Effect]:
    """The effect of the file's tree in place of the institution's; a tree changes no result."""
    results = [p for p in carbon.lake.partitions(EMISSIONS.name) if year_of(p) == year]
    if not results:
        return
    tree = ["unit_id", "parent_id"]
    present = carbon.units(year)
    others = present.filter(pc.not_equal(present.column("institution"), file.institution)).select(tree)
    trees = {"before": present.select(tree), "after": pa.concat_tables([others, rows.select(tree)])}
    sums = sums_of(carbon, results)
    reports = {side: report_rows(carbon.catalogue, year, sums, units) for side, units in trees.items()}
    for row in query(packaged(__file__, "unit_effects"), reports).to_pylist():
        yield Effect(year, "unit_id", row["unit_id"], row["before_mg"], row["after_mg"])

"""What the page of a report shows, as plain values: queries in, numbers and texts out. No markup here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from domain.carbon.catalogue import Catalogue, EntryType
from domain.carbon.fallbacks import Fallback
from domain.carbon.report_state import ReportState
from services.carbon.report import Report
from services.carbon.store import YearLock

Row = Mapping[str, Any]
SCOPES = (1, 2, 3)


@dataclass(frozen=True)
class PageRows:
    """The rows of the page's queries, each of the report's year and unit."""

    units: Sequence[Row] = ()
    """unit_id, parent_id, name"""
    years: Sequence[Row] = ()
    """year, scope, mg, unmatched: of every year up to the report's"""
    results: Sequence[Row] = ()
    """data_entry_type, emission_type, mg, entries, unmatched, overridden"""
    factors: Sequence[Row] = ()
    """data_entry_type, source, factors, stale, mg"""
    files: Sequence[Row] = ()
    """kind, data_entry_type, file, by, at, rows, taken"""
    unmatched: Sequence[Row] = ()
    """data_entry_type, emission_type, classification, entries, kinds; no classification where the entries
    changed since"""


@dataclass(frozen=True)
class PageContext:
    """What the page shows besides rows of the report."""

    institution: str
    made_at: datetime
    state: ReportState = field(default_factory=lambda: ReportState(0))
    lock: YearLock | None = None
    as_of: datetime | None = None
    """The past moment that the report shows."""
    outdated_years: frozenset[int] = frozenset()
    """Earlier years whose own reports are not up to date."""
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """Masses by scope, of a module or of a year."""

    title: str
    by_scope: tuple[int, ...]
    unmatched: int = 0
    empty: bool = False
    """No entry, or no report of that year."""
    outdated: bool = False
    before_mg: int | None = None
    """Of a year: the mass of the year before, if the two can be compared."""

    @property
    def mg(self) -> int:
        return sum(self.by_scope)


@dataclass(frozen=True)
class Category:
    """A category of the GHG Protocol."""

    title: str
    mg: int
    unmatched: int | None


@dataclass(frozen=True)
class Emission:
    """The results of one data entry type for one kind of emissions."""

    name: str
    scope: int
    category: str
    mg: int
    entries: int
    unmatched: int
    overridden: int


@dataclass(frozen=True)
class Method:
    """How a data entry type is calculated, and its results."""

    type: EntryType
    module: str
    emissions: tuple[Emission, ...]
    outdated: str
    """Why the results are not up to date; empty if they are."""

    @property
    def mg(self) -> int:
        return sum(emission.mg for emission in self.emissions)


@dataclass(frozen=True)
class Unit:
    """A unit of the tree. The units stand in the order of reading; `depth` is their level."""

    unit_id: str
    name: str
    depth: int
    own_mg: int
    total_mg: int
    unmatched: int
    empty: bool
    leaf: bool
    outside: bool
    """It has entries, and no file of units names it."""


@dataclass(frozen=True)
class ReportView:
    year: int
    unit: str | None
    """The name of the report's unit; None if the report is of all units."""
    context: PageContext
    notes: tuple[str, ...]
    total: Line
    results: int
    modules: tuple[Line, ...]
    """All of the catalogue, the heaviest first."""
    categories: tuple[Category, ...]
    years: tuple[Line, ...]
    units: tuple[Unit, ...]
    methods: tuple[Method, ...]
    """In the catalogue's order: the types that have results, or should have newer ones."""
    fallbacks: tuple[Fallback, ...]
    """What is counted with a fallback factor, the heaviest first."""
    rows: PageRows
    """Sources, files and unmatched entries are shown as they are."""
    titles: Mapping[str, str]
    """Of the data entry types, by name; a published report still shows a type that the catalogue lost."""

    @property
    def decimals(self) -> int:
        """Decimals of all tonnes of the page: at least four digits of the largest number."""
        tonnes = abs(self.total.mg) // 10**9
        return 1 if tonnes >= 1_000 else 2 if tonnes >= 10 else 3

    @property
    def incomplete(self) -> list[tuple[Method, Emission]]:
        """The kinds of emissions with entries that have no factor, or whose mass was measured."""
        pairs = [(method, emission) for method in self.methods for emission in method.emissions]
        return [(method, emission) for method, emission in pairs if emission.unmatched or emission.overridden]


def view_of(catalogue: Catalogue, report: Report, rows: PageRows, context: PageContext) -> ReportView:
    total = _line("All", report.rows)
    methods = tuple(_methods(catalogue, rows.results, context.state.outdated))
    names = {unit["unit_id"]: unit["name"] for unit in rows.units}
    return ReportView(
        year=report.year,
        unit=None if report.unit is None else names.get(report.unit) or report.unit,
        context=context,
        notes=report.notes,
        total=total,
        results=report.results,
        modules=_modules(catalogue, report.rows),
        categories=tuple(_categories(methods, total.mg)),
        years=_years(report.year, total, rows.years, context.outdated_years),
        units=tuple(_units(report, rows.units)),
        methods=methods,
        fallbacks=report.fallbacks,
        rows=rows,
        titles={name: kind.title for name, kind in catalogue.types.items()},
    )


def _line(title: str, rows: Sequence[Row]) -> Line:
    by_scope = tuple(sum(row["mg"] for row in rows if row["scope"] == scope) for scope in SCOPES)
    return Line(title, by_scope, sum(row["unmatched"] for row in rows), empty=not rows)


def _modules(catalogue: Catalogue, rows: Sequence[Row]) -> tuple[Line, ...]:
    titles = {row["module"]: row["module"] for row in rows}
    titles |= {module.name: module.title for module in catalogue.modules}
    lines = [_line(title, [r for r in rows if r["module"] == name]) for name, title in titles.items()]
    return tuple(sorted(lines, key=lambda line: (line.empty, -line.mg)))


def _years(year: int, total: Line, rows: Sequence[Row], outdated: frozenset[int]) -> tuple[Line, ...]:
    """From the first year to the report's; a year in between without a report is empty."""
    first = min([year, *(row["year"] for row in rows)])
    lines: list[Line] = []
    for one in range(first, year + 1):
        line = total if one == year else _line("", [row for row in rows if row["year"] == one])
        line = replace(line, title=str(one), outdated=one in outdated and one != year)
        before = lines[-1] if lines else None
        if before is not None and not (before.empty or before.outdated or line.outdated):
            line = replace(line, before_mg=before.mg)
        lines.append(line)
    return tuple(lines)


def _categories(methods: Iterable[Method], total_mg: int) -> Iterator[Category]:
    groups: dict[tuple[int, str], list[Emission]] = defaultdict(list)
    for method in methods:
        for emission in method.emissions:
            groups[emission.scope, emission.category].append(emission)
    if not groups:
        return
    for (scope, name), emissions in sorted(groups.items(), key=lambda group: _numbered(*group[0])):
        mg = sum(emission.mg for emission in emissions)
        yield Category(f"Scope {scope}, {name}", mg, sum(emission.unmatched for emission in emissions))
    if rest := total_mg - sum(emission.mg for emissions in groups.values() for emission in emissions):
        yield Category("Of types that are no longer counted", rest, None)


def _numbered(scope: int, category: str) -> tuple[int, int, str]:
    """The categories of scope 3 are numbered from 1 to 15."""
    number = category.split(maxsplit=1)[0]
    return scope, int(number) if number.isdigit() else 0, category


def _methods(catalogue: Catalogue, results: Sequence[Row], outdated: Mapping[str, str]) -> Iterator[Method]:
    by_name = {(row["data_entry_type"], row["emission_type"]): row for row in results}
    known = {row["data_entry_type"] for row in results} | outdated.keys()
    for module in catalogue.modules:
        for kind in module.types:
            if kind.name in known:
                rows = [(emission, by_name.get((kind.name, emission.name))) for emission in kind.emissions]
                emissions = tuple(
                    Emission(
                        name=emission.name,
                        scope=emission.scope,
                        category=emission.category,
                        **{name: row[name] for name in ("mg", "entries", "unmatched", "overridden")},
                    )
                    for emission, row in rows
                    if row is not None
                )
                yield Method(kind, module.title, emissions, outdated.get(kind.name, ""))


def _units(report: Report, rows: Sequence[Row]) -> Iterator[Unit]:
    """The tree from the top, or from the report's unit; of siblings the heaviest first."""
    sums: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in report.units:
        for name in ("own_mg", "total_mg", "total_results", "total_unmatched"):
            sums[row["unit_id"]][name] += row[name]
    known = {row["unit_id"]: row for row in rows}
    outside = [{"unit_id": unit, "parent_id": None, "name": ""} for unit in sums if unit not in known]
    ranked = sorted(
        (*rows, *outside), key=lambda u: (-sums[u["unit_id"]]["total_mg"], u["name"], u["unit_id"])
    )
    for unit, depth, leaf in _preorder(ranked, report.unit):
        of = sums[unit["unit_id"]]
        yield Unit(
            unit_id=unit["unit_id"],
            name=unit["name"] or unit["unit_id"],
            depth=depth,
            own_mg=of["own_mg"],
            total_mg=of["total_mg"],
            unmatched=of["total_unmatched"],
            empty=of["total_results"] == 0,
            leaf=leaf,
            outside=unit["unit_id"] not in known,
        )


def _preorder(units: Sequence[Row], top: str | None) -> Iterator[tuple[Row, int, bool]]:
    """Each unit once, with its depth and whether it is a leaf. A circle begins at its heaviest unit."""
    ids = {unit["unit_id"] for unit in units}
    below: dict[str | None, list[Row]] = defaultdict(list)
    for unit in units:
        below[unit["parent_id"] if unit["parent_id"] in ids else None].append(unit)
    if top is None:
        roots = below[None] + [unit for unit in units if unit["parent_id"] in ids]
    else:
        roots = [unit for unit in units if unit["unit_id"] == top]
    waiting = [(unit, 0) for unit in reversed(roots)]
    seen: set[str] = set()
    while waiting:
        unit, depth = waiting.pop()
        if unit["unit_id"] in seen:
            continue
        seen.add(unit["unit_id"])
        children = [child for child in below[unit["unit_id"]] if child["unit_id"] not in seen]
        waiting += [(child, depth + 1) for child in reversed(children)]
        yield unit, depth, not children

"""The numbers of a page: sums of the report's whole milligrams by scope, module, year and unit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from services.carbon.page_data import PageData, UnitName, spoken
from services.carbon.page_numbers import Tonnes
from services.carbon.report import Report

SCOPES = (1, 2, 3)


@dataclass(frozen=True)
class Line:
    """Masses by scope, of a module or of a year."""

    title: str
    by_scope: tuple[int, ...]
    unmatched: int = 0
    empty: bool = False
    """Nothing is known: not one entry, or no report."""
    old: bool = False
    """Not up to date, of another year than the report's."""

    @property
    def mg(self) -> int:
        return sum(self.by_scope)


@dataclass(frozen=True)
class UnitLine:
    """A unit in the tree, told in the order of reading; `depth` says below which."""

    unit_id: str
    name: str
    depth: int
    own_mg: int
    total_mg: int
    unmatched: int
    empty: bool
    leaf: bool
    outside: bool = False
    """In no file of units, though it has entries."""


@dataclass(frozen=True)
class Figures:
    year: int
    unit: str | None
    """The name of the unit the report is of, if it is not of all."""
    total: Line
    results: int
    modules: tuple[Line, ...]
    years: tuple[Line, ...]
    units: tuple[UnitLine, ...]
    tonnes: Tonnes


def figures(report: Report, data: PageData) -> Figures:
    total = _line("All", report.rows)
    names = {u.unit_id: u.name for u in data.units}
    return Figures(
        year=report.year,
        unit=None if report.unit is None else names.get(report.unit) or spoken(report.unit),
        total=total,
        results=sum(row["results"] for row in report.rows),
        modules=_modules(report, data),
        years=_years(report, data, total),
        units=tuple(_units(report, data)),
        tonnes=Tonnes.of_total(total.mg),
    )


def _line(title: str, rows: Sequence[Mapping[str, Any]]) -> Line:
    return Line(
        title=title,
        by_scope=tuple(sum(r["mg"] for r in rows if r["scope"] == scope) for scope in SCOPES),
        unmatched=sum(r["unmatched"] for r in rows),
        empty=not rows,
    )


def _modules(report: Report, data: PageData) -> tuple[Line, ...]:
    """All of the catalogue, the heaviest first: a module without entries is something a reader must see."""
    titles = {r["module"]: r["module"] for r in report.rows} | {m.name: m.title for m in data.modules}
    lines = [_line(title, [r for r in report.rows if r["module"] == name]) for name, title in titles.items()]
    return tuple(sorted(lines, key=lambda line: (line.empty, -line.mg)))


def _years(report: Report, data: PageData, total: Line) -> tuple[Line, ...]:
    """From the first to the last; one in between that has no report stays in its place."""
    known = {y.year for y in data.years}
    lines = {
        year: replace(
            _line(str(year), [asdict(y) for y in data.years if y.year == year]), old=year in data.old_years
        )
        for year in known
    }
    lines[report.year] = replace(total, title=str(report.year))
    return tuple(lines.get(y) or _line(str(y), []) for y in range(min(lines), max(lines) + 1))


@dataclass
class _Sum:
    own_mg: int = 0
    total_mg: int = 0
    results: int = 0
    unmatched: int = 0


def _units(report: Report, data: PageData) -> Iterable[UnitLine]:
    """The tree from the top, or from the report's unit, the heaviest first."""
    sums: dict[str, _Sum] = defaultdict(_Sum)
    for row in report.units:
        place = sums[spoken(row["unit_id"])]
        place.own_mg += row["own_mg"]
        place.total_mg += row["total_mg"]
        place.results += row["total_results"]
        place.unmatched += row["total_unmatched"]
    named = {u.unit_id: u for u in data.units}
    strangers = [UnitName(unit, None, "") for unit in sums if unit not in named]
    ranked = sorted((*data.units, *strangers), key=lambda u: (-sums[u.unit_id].total_mg, u.name, u.unit_id))
    top = None if report.unit is None else spoken(report.unit)
    for unit, depth, leaf in _preorder(ranked, top):
        of = sums[unit.unit_id]
        yield UnitLine(
            unit_id=unit.unit_id,
            name=unit.name or unit.unit_id,
            depth=depth,
            own_mg=of.own_mg,
            total_mg=of.total_mg,
            unmatched=of.unmatched,
            empty=of.results == 0,
            leaf=leaf,
            outside=unit.unit_id not in named,
        )


def _preorder(units: Sequence[UnitName], top: str | None) -> Iterable[tuple[UnitName, int, bool]]:
    """Each unit once, with its depth. A circle that somebody made by hand begins at its heaviest unit."""
    ids = {u.unit_id for u in units}
    below: dict[str | None, list[UnitName]] = defaultdict(list)
    for unit in units:
        below[unit.parent_id if unit.parent_id in ids else None].append(unit)
    roots = below[None] + [u for u in units if u.parent_id in ids] if top is None else []
    waiting = [(u, 0) for u in reversed(roots or [u for u in units if u.unit_id == top])]
    seen: set[str] = set()
    while waiting:
        unit, depth = waiting.pop()
        if unit.unit_id in seen:
            continue
        seen.add(unit.unit_id)
        children = [u for u in below[unit.unit_id] if u.unit_id not in seen]
        waiting += [(u, depth + 1) for u in reversed(children)]
        yield unit, depth, not children

"""What files come to: from the files alone, calculated by somebody else (`sandbox/carbon/independent.py`)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from domain.carbon import catalogue
from hunts.carbon_files import INSTITUTIONS, SHAPES, YEARS, Sheet
from tests.oracles.carbon import Book, Factor, Line, Result, factors_of, report, results

BOOK = Book.of(Path(catalogue.__file__).with_name("catalogue.yaml").read_text(encoding="utf-8"))
Factors = Mapping[tuple[str, str], list[Factor]]


def truth(sheets: Sequence[Sheet], year: int) -> dict[tuple[str, str, int], Line]:
    """The report of a year, by unit, module and scope, after these files have come in this order."""
    known = [s for s in sheets if s.year == year]
    factors = _factors(s for s in known if s.kind == "factors")
    newest = {(s.topic, s.institution): s for s in known if s.kind == "data"}
    trees = [s for s in known if s.kind == "units"]
    parents = {row["unit_id"]: row["parent_id"] for s in trees[-1:] for row in s.rows()}
    return report(BOOK, [r for s in newest.values() for r in _results(s, factors)], parents)


def _factors(sheets: Iterable[Sheet]) -> Factors:
    """Of each thing that factors are for, the newest; what a newer file lacks stays."""
    lines: dict[tuple[str, str, str], dict[str, str]] = {}
    for sheet in sheets:
        for row in sheet.rows():
            lines[row["data_entry_type"], row["emission_type"], row["classification"]] = row
    return factors_of(lines.values())


def _results(sheet: Sheet, factors: Factors) -> Iterator[Result]:
    return results(BOOK, sheet.topic, sheet.rows(), factors)


def possible(before: Sequence[Sheet], coming: Sequence[Sheet], year: int) -> dict[str, list[int]]:
    """By module, every mass that a report may show while `coming` are uploaded in whatever order.

    Each type as some one file of factors and some one file of each institution make it: whole, or not at all.
    Every file of factors has all factors of the types it speaks of.
    """
    found: dict[str, set[int]] = defaultdict(lambda: {0})
    for name in SHAPES:
        module = BOOK.module_of[name]
        masses = _masses(before, coming, year, name)
        found[module] = {a + b for a in found[module] for b in masses}
    return {module: sorted(masses) for module, masses in found.items()}


def _masses(before: Sequence[Sheet], coming: Sequence[Sheet], year: int, name: str) -> set[int]:
    mine = [s for s in (*before, *coming) if s.year == year]
    speaking = [s for s in mine if s.kind == "factors" and _speaks_of(s, name)]
    states: list[Factors] = [_factors([s]) for s in speaking]
    if not any(s in before for s in speaking):
        states.append({})
    files = [_choices(before, mine, name, institution) for institution in INSTITUTIONS]
    return {
        sum(r.mg or 0 for sheet in chosen if sheet for r in _results(sheet, factors))
        for factors in states
        for chosen in product(*files)
    }


def _choices(
    before: Sequence[Sheet], mine: Sequence[Sheet], name: str, institution: str
) -> list[Sheet | None]:
    found: list[Sheet | None] = [s for s in mine if (s.topic, s.institution) == (name, institution)]
    return found if any(s in before for s in found) else [*found, None]


def _speaks_of(sheet: Sheet, name: str) -> bool:
    return any(row["data_entry_type"] == name for row in sheet.rows())


def write_possible(place: Path, before: Sequence[Sheet], coming: Sequence[Sheet]) -> None:
    """For readers in other processes."""
    place.write_text(json.dumps({year: possible(before, coming, year) for year in YEARS}))

"""What files come to: calculated from the files alone by the oracle (`tests/oracles/carbon.py`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from domain.carbon import catalogue
from tests.chaos.carbon_files import INSTITUTIONS, SHAPES, Sheet
from tests.oracles.carbon import Book, Factor, Line, Result, factors_of, report, results

BOOK = Book.of(Path(catalogue.__file__).with_name("catalogue.yaml").read_text(encoding="utf-8"))
Factors = Mapping[tuple[str, str], list[Factor]]


def true_report(sheets: Sequence[Sheet], year: int) -> dict[tuple[str, str, int], Line]:
    """The report of a year, by unit, module and scope, after these files have come in this order."""
    known = [s for s in sheets if s.year == year]
    factors = _factors(s for s in known if s.kind == "factors")
    newest = {(s.topic, s.institution): s for s in known if s.kind == "data"}
    trees = [s for s in known if s.kind == "units"]
    parents = {row["unit_id"]: row["parent_id"] for s in trees[-1:] for row in s.rows()}
    return report(BOOK, [r for s in newest.values() for r in _results(s, factors)], parents)


def _factors(sheets: Iterable[Sheet]) -> Factors:
    """The newest of each factor; a factor that a newer file lacks stays."""
    lines: dict[tuple[str, str, str], dict[str, str]] = {}
    for sheet in sheets:
        for row in sheet.rows():
            lines[row["data_entry_type"], row["emission_type"], row["classification"]] = row
    return factors_of(lines.values())


def _results(sheet: Sheet, factors: Factors) -> Iterator[Result]:
    return results(BOOK, sheet.topic, sheet.rows(), factors)


def possible(before: Sequence[Sheet], coming: Sequence[Sheet], year: int) -> dict[str, list[int]]:
    """By module, every mass that a report may show while `coming` are uploaded in any order.

    Each type is as one file of factors and one file of each institution make it, whole or not at all. Every
    file of factors has all factors of its types.
    """
    found: dict[str, set[int]] = defaultdict(lambda: {0})
    for name in SHAPES:
        module = BOOK.module_of[name]
        masses = _masses(before, [s for s in (*before, *coming) if s.year == year], name)
        found[module] = {a + b for a in found[module] for b in masses}
    return {module: sorted(masses) for module, masses in found.items()}


def _masses(before: Sequence[Sheet], sheets: Sequence[Sheet], name: str) -> set[int]:
    of_name = [
        s for s in sheets if s.kind == "factors" and any(r["data_entry_type"] == name for r in s.rows())
    ]
    states: list[Factors] = [_factors([s]) for s in of_name]
    if not any(s in before for s in of_name):
        states.append({})
    choices: list[list[Sheet | None]] = []
    for institution in INSTITUTIONS:
        files: list[Sheet | None] = [s for s in sheets if (s.topic, s.institution) == (name, institution)]
        choices.append(files if any(s in before for s in files) else [*files, None])
    return {
        sum(r.mg or 0 for sheet in chosen if sheet for r in _results(sheet, factors))
        for factors in states
        for chosen in product(*choices)
    }

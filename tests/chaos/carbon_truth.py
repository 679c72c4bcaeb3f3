"""What files come to: calculated from the files alone by the oracle (`tests/oracles/carbon.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from domain.carbon import catalogue
from tests.chaos.carbon_files import Sheet
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

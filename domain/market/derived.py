"""From which versions derived partitions are made: None where the inputs are not there yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from domain.market.catalogue import Catalogue, Endpoint
from domain.market.completeness import SAYS_SO, judge
from domain.market.observed import Observed
from domain.shared.cell import Cell
from domain.shared.table import ABSENT

ADJUSTED_FROM = ("normalized_daily", "normalized_adj_factor")


def derivable(fetched: Collection[str], partition: str, cells: Mapping[tuple[str, str], Cell]) -> bool:
    """Whether a run that fetches these tables of a day can adjust its prices: prices and factors are
    published hours apart, so at noon a run has today's factors and nothing to adjust."""
    return all(name in fetched or _usable(cells[name, partition]) for name in ADJUSTED_FROM)


def adjusted_inputs(seen: Observed, partition: str) -> dict[str, str] | None:
    cells = {name: seen.cell(name, partition) for name in ADJUSTED_FROM}
    if not all(map(_usable, cells.values())):
        return None
    return {name: str(cell.version) for name, cell in cells.items()}


def coverage_sources(catalogue: Catalogue) -> tuple[str, ...]:
    """The tables that coverage of a day is made from: those of the day, and what tells how many it should
    have."""
    return (*(e.name for e in catalogue.daily), catalogue.stocks.name)


def references(catalogue: Catalogue, endpoint: Endpoint) -> tuple[str, ...]:
    """The tables that tell how many rows a day of this one should have."""
    stocks = catalogue.stocks.name
    return {"listed": (stocks,), "listed_less_suspended": (stocks, "suspensions")}.get(endpoint.expected, ())


def first_unread(seen: Observed, tables: Iterable[str], partition: str) -> str | None:
    """Which of these cannot be read now: what is made from them waits for it."""
    return next((name for name in tables if seen.source(name, partition).version.unread), None)


def _usable(cell: Cell) -> bool:
    return cell.untouched and cell.version != ABSENT


def coverage_inputs(catalogue: Catalogue, seen: Observed, partition: str) -> dict[str, str] | None:
    """Coverage speaks of every table of the day, so it is made from all of them and from what is expected."""
    cells = {e.name: seen.cell(e.name, partition) for e in catalogue.daily}
    if first_unread(seen, coverage_sources(catalogue), partition):
        return None
    if all(cell.recorded is None and cell.version == ABSENT for cell in cells.values()):
        return None
    inputs = {}
    for endpoint in catalogue.daily:
        cell, expected = cells[endpoint.name], seen.expected.get((endpoint.name, partition))
        inputs[endpoint.name] = f"{cell.version} {coverage_status(endpoint, cell, expected)} of {expected}"
    return inputs


def coverage_status(endpoint: Endpoint, cell: Cell, expected: int | None) -> str:
    """The word of the coverage table for one table of one day."""
    if not cell.version.readable:
        return str(cell.version)
    if cell.version == ABSENT and cell.recorded != ABSENT:
        return "missing"
    status = judge(endpoint, cell.version.rows, expected).status
    if status == "partial" and cell.seen_count >= SAYS_SO:
        return "explained"
    return {"refused": "incomplete", "empty": "missing"}.get(status, status)

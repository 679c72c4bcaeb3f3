"""From which versions derived partitions are made: None where the inputs are not there yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from domain.market.catalogue import Catalogue, Endpoint
from domain.market.completeness import EXPLAINED_AFTER, judge
from domain.market.observed import Observed
from domain.shared.state import PartitionState
from domain.shared.table import ABSENT
from domain.shared.verdict import waits_for

ADJUSTED_FROM = ("normalized_daily", "normalized_adj_factor")


def derivable(
    fetched: Collection[str], partition: str, states: Mapping[tuple[str, str], PartitionState]
) -> bool:
    """Whether a run that fetches these tables of a day can adjust its prices: prices and factors are
    published hours apart, so at noon a run has today's factors and nothing to adjust."""
    return all(name in fetched or _usable(states[name, partition]) for name in ADJUSTED_FROM)


def adjusted_inputs(seen: Observed, partition: str) -> dict[str, str] | None:
    states = {name: seen.state(name, partition) for name in ADJUSTED_FROM}
    if not all(map(_usable, states.values())):
        return None
    return {name: str(state.version) for name, state in states.items()}


def coverage_sources(catalogue: Catalogue) -> tuple[str, ...]:
    """The tables that coverage is made from: the daily tables and the stock list."""
    return (*(e.name for e in catalogue.daily), catalogue.stocks.name)


def references(catalogue: Catalogue, endpoint: Endpoint) -> tuple[str, ...]:
    """The tables from which the expected rows of this one are counted."""
    stocks = catalogue.stocks.name
    return {"listed": (stocks,), "listed_less_suspended": (stocks, "suspensions")}.get(endpoint.expected, ())


def _usable(state: PartitionState) -> bool:
    return state.untouched and state.version != ABSENT


def coverage_inputs(catalogue: Catalogue, seen: Observed, partition: str) -> dict[str, str] | None:
    """Coverage describes every table of the day, so its inputs are all of them and the expected rows."""
    states = {e.name: seen.state(e.name, partition) for e in catalogue.daily}
    if waits_for([], {name: seen.source(name, partition) for name in coverage_sources(catalogue)}):
        return None
    if all(state.never_made for state in states.values()):
        return None
    inputs = {}
    for endpoint in catalogue.daily:
        state, expected = states[endpoint.name], seen.expected.get((endpoint.name, partition))
        inputs[endpoint.name] = f"{state.version} {coverage_status(endpoint, state, expected)} of {expected}"
    return inputs


def coverage_status(endpoint: Endpoint, state: PartitionState, expected: int | None) -> str:
    """Return the status that the coverage table stores for one table and day."""
    if not state.version.readable:
        return str(state.version)
    if state.version == ABSENT and state.recorded != ABSENT:
        return "missing"
    status = judge(endpoint, state.version.rows, expected).status
    if status == "partial" and state.seen_count >= EXPLAINED_AFTER:
        return "explained"
    return {"refused": "incomplete", "empty": "missing"}.get(status, status)

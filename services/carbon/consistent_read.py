"""Reading a year while others change it: numbers and the state of the report belong together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from domain.carbon.observed import Observed
from domain.carbon.report_state import ReportState, report_state
from domain.carbon.tables import TABLES, year_of
from services.carbon.service import CarbonService

AT_MOST = 3
"""Reads that a commit may spoil. A page takes a second or two, the pipeline of an edit longer."""

Found = TypeVar("Found")
Read = Callable[[Observed, ReportState], Found]


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

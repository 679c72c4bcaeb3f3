"""Reading a year beside people and runs that change it: numbers and what is said of them belong together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from domain.carbon.observed import Observed
from domain.carbon.standing import Standing, standing
from domain.carbon.tables import TABLES
from domain.carbon.verdict import year_of
from services.carbon.service import CarbonService

AT_MOST = 3
"""Readings that a commit may spoil. A page takes a second or two, the chain of an edit longer."""

Found = TypeVar("Found")
Read = Callable[[Observed, Standing], Found]


def steadily(carbon: CarbonService, year: int, read: Read[Found]) -> Found:
    """What `read` makes of the lake, given what was observed before it. It reads again if the year changed
    meanwhile: old numbers without a note, or numbers of two moments, are never shown as if nothing were."""
    for _ in range(AT_MOST):
        seen = carbon.observe()
        found = read(seen, standing_of(carbon, seen, year))
        if _moment(Observed(states=carbon.states(TABLES)), year) == _moment(seen, year):
            return found
    seen = carbon.observe()
    return read(seen, replace(standing_of(carbon, seen, year), unsteady=True))


def standing_of(carbon: CarbonService, seen: Observed, year: int) -> Standing:
    return standing(carbon.catalogue, seen, carbon.plan_of(seen).verdicts, year)


def _moment(seen: Observed, year: int) -> dict[tuple[str, str], tuple[object, object]]:
    """What lies there, and what was recorded of it: between the two a commit is not told yet."""
    return {
        place: (state.version, state.recorded)
        for place, state in seen.states.items()
        if year_of(place[1]) == year
    }

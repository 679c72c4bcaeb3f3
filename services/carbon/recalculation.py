"""What numbers wait for, with the work that corrects it: one observation for each question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from domain.carbon.catalogue import Catalogue
from domain.carbon.jobs import KINDS
from domain.carbon.observed import Observed
from domain.carbon.recalculation import ModuleState, StaleFactors, module_states, stale_factors
from domain.shared.verdict import Plan
from domain.shared.work import Work
from services.carbon.service import CarbonService

Answer = TypeVar("Answer")


def find_stale_factors(carbon: CarbonService) -> StaleFactors:
    """Return the types and years that are calculated with factors that changed."""
    return _answered(carbon, stale_factors)


def recalculation_status(carbon: CarbonService) -> list[ModuleState]:
    """Return how current the numbers of each module of each year are."""
    return _answered(carbon, module_states)


def _answered(
    carbon: CarbonService, answer: Callable[[Catalogue, Observed, Plan, Sequence[Work]], Answer]
) -> Answer:
    seen = carbon.observe()
    work = carbon.ledger.current(tuple(kind.name for kind in KINDS))
    return answer(carbon.catalogue, seen, carbon.plan_of(seen), work)

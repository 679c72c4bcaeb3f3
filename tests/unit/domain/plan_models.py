"""What the plan models of the domains share: an oracle's want, and how a model is run.

An oracle keeps what each partition holds, its record and its inputs; it never reads states or verdicts. The
plan must be complete, minimal, and the same for the same observation.

A failure prints its steps and a blob: put `@reproduce_failure(...)` on the model to replay it, or run with
the `--hypothesis-seed` that it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from domain.shared.verdict import Plan

PartitionId = tuple[str, str]
STEPS = 25
EXAMPLES = pytest.mark.parametrize(
    "examples", [pytest.param(20, id="short"), pytest.param(150, id="long", marks=pytest.mark.chaos)]
)


@dataclass(frozen=True)
class Want:
    """What the verdict on an unhealthy partition must be, and all that its fingerprint stands for."""

    state: str
    reason: str
    records: tuple[Any, ...]


class PlanModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.fingerprints: dict[tuple[PartitionId, str], tuple[Any, ...]] = {}
        self.fingerprint_of: dict[tuple[PartitionId, tuple[Any, ...]], str] = {}

    def fingerprints_match_the_records(self, found: Plan, wants: dict[PartitionId, Want]) -> None:
        """Over the whole history the same records have the same fingerprint, other records another one."""
        for verdict in found.due:
            place, print_ = (verdict.table, verdict.partition), verdict.fingerprint
            records = (wants[place].reason, *wants[place].records)
            assert self.fingerprint_of.setdefault((place, records), print_) == print_
            assert self.fingerprints.setdefault((place, print_), records) == records


def run_model(model: type[PlanModel], examples: int) -> None:
    run_state_machine_as_test(
        model,
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=False,
            print_blob=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

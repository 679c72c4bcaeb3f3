"""The health of the references: the plan's verdicts and the ledger's work as findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from domain.references.plan import UNAVAILABLE_HANDOFF
from domain.shared.health import Finding, Health
from domain.shared.verdict import UNAVAILABLE, Plan
from domain.shared.work import Work
from domain.shared.work_findings import plan_findings

_HEALTH: Mapping[str, Health] = {UNAVAILABLE: "broken", UNAVAILABLE_HANDOFF: "explained"}


def findings(plan: Plan, work: Sequence[Work], now: datetime, machine_now: datetime) -> list[Finding]:
    """Return everything that is not healthy, the worst first. `work`: what counts of it."""
    found = plan_findings("references", plan, work, now, machine_now, _HEALTH)
    return sorted(found, key=lambda f: f.rank)

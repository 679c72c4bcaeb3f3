"""The health of the references: the plan's verdicts and the ledger's work as findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from domain.references.plan import UNAVAILABLE_HANDOFF
from domain.shared.health import Finding, Health
from domain.shared.verdict import UNAVAILABLE, Plan
from domain.shared.work import Work
from domain.shared.work_findings import Backlog, plan_findings, pulled_findings

_HEALTH: Mapping[str, Health] = {UNAVAILABLE: "broken", UNAVAILABLE_HANDOFF: "explained"}


@dataclass(frozen=True)
class Pulled:
    """The work of a pulled kind: the first word of its keys, what is under way by source, what failed."""

    table: str
    backlog: Mapping[str, Backlog]
    failed: Sequence[Work] = ()


def findings(
    plan: Plan, work: Sequence[Work], now: datetime, machine_now: datetime, pulled: Iterable[Pulled] = ()
) -> list[Finding]:
    """Return everything that is not healthy, the worst first. `work`: what counts of scrapes."""
    found = plan_findings("references", plan, work, now, machine_now, _HEALTH)
    for one in pulled:
        found += pulled_findings("references", one.table, one.backlog, one.failed, now)
    return sorted(found, key=lambda f: f.rank)

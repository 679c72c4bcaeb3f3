"""The health of the references: the plan's verdicts and the ledger's work as findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from domain.references.plan import UNAVAILABLE_HANDOFF
from domain.shared.health import Finding, Health
from domain.shared.reasons import actions
from domain.shared.verdict import UNAVAILABLE, Plan
from domain.shared.work import Refusals, Work
from domain.shared.work_findings import Backlog, plan_findings, pulled_findings

SOURCE_REMOVED = "source_removed"
_HEALTH: Mapping[str, Health] = {UNAVAILABLE: "broken", UNAVAILABLE_HANDOFF: "explained"}


@dataclass(frozen=True)
class Pulled:
    """The work of a pulled kind: the first word of its keys, what is under way by source, what is refused."""

    table: str
    backlog: Mapping[str, Backlog]
    refused: Sequence[Refusals] = ()


def findings(
    plan: Plan, work: Sequence[Work], now: datetime, machine_now: datetime, pulled: Iterable[Pulled] = ()
) -> list[Finding]:
    """Return everything that is not healthy, the worst first. `work`: what counts of scrapes.

    Of sources that are not set any more only what waits for them is shown.
    """
    sources = {verdict.partition for verdict in plan.verdicts}
    of_sources = [row for row in work if row.partition in sources]
    found = plan_findings("references", plan, of_sources, now, machine_now, _HEALTH)
    for one in pulled:
        known = {source: of for source, of in one.backlog.items() if source in sources}
        refused = [of for of in one.refused if of.newest.tenant in sources]
        found += pulled_findings("references", one.table, known, refused, now)
        found += [_removed(one.table, s, of) for s, of in one.backlog.items() if s not in sources]
    return sorted(found, key=lambda f: f.rank)


def _removed(table: str, source: str, held: Backlog) -> Finding:
    reason = f"{held.waiting + held.running:,} wait for a source that is not in the sources file any more"
    return Finding(
        "references",
        f"{table}:{source}",
        "explained",
        SOURCE_REMOVED,
        reason,
        since=held.oldest,
        action=actions("references")[SOURCE_REMOVED],
    )

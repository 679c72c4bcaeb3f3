"""Findings of the market: from the plan's verdicts, the work items and the sources' freshness.

Status, checks, watchdog and pages only show what is computed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from domain.market.freshness import freshness
from domain.market.plan import EARLY, EXPLAINED
from domain.market.tables import DERIVED
from domain.market.trading import TradingCalendar
from domain.shared.health import Finding, Health, SourceFreshness
from domain.shared.reasons import actions
from domain.shared.verdict import UNAVAILABLE, Plan
from domain.shared.work import Work, split_key
from domain.shared.work_findings import plan_findings

_HEALTH: Mapping[str, Health] = {UNAVAILABLE: "broken", EXPLAINED: "explained"}
"""What cannot be read needs a person if it lasts."""


def findings(
    plan: Plan,
    work: Sequence[Work],
    sources: Iterable[SourceFreshness],
    calendar: TradingCalendar,
    now: datetime,
    machine_now: datetime,
    history_gaps: int = 0,
    lost: Mapping[str, Sequence[str]] | None = None,
) -> list[Finding]:
    """Return everything that is not healthy, the worst first. `work` are the work items that are not done.

    `lost` names, by table, the days that were fetched and are gone from the lake.
    """
    found = plan_findings("market", plan, work, now, machine_now, _HEALTH, unshown=[EARLY])
    found += _sources(sources, calendar, now)
    if history_gaps:
        found.append(_history(history_gaps))
    known = {v.key for v in plan.verdicts} | {
        row.key for row in work if row.status not in ("failed", "cancelled")
    }
    for table, days in (lost or {}).items():
        if older := [d for d in days if f"{table.split('.', 1)[1]}:{d}" not in known]:
            found.append(_lost(table, older))
    return sorted(_with_causes(found), key=lambda f: f.rank)


def _with_causes(found: Sequence[Finding]) -> Iterator[Finding]:
    """Findings of derived tables name the finding of their day that causes them."""
    derived = {t.table for t in DERIVED}
    causes = {f.subject: f for f in found if split_key(f.subject)[0] not in derived and ":" in f.subject}
    by_day: dict[str, str] = {}
    for subject in sorted(causes, reverse=True):
        by_day[split_key(subject)[1]] = subject
    for finding in found:
        table, day = split_key(finding.subject)
        yield replace(finding, caused_by=by_day.get(day)) if table in derived else finding


_SOURCE_HEALTH: Mapping[str, Health] = {"error": "broken", "stale": "stale", "never_ingested": "healing"}


def _sources(
    sources: Iterable[SourceFreshness], calendar: TradingCalendar, now: datetime
) -> Iterable[Finding]:
    for source in sources:
        fresh = freshness(source, calendar, now)
        if fresh.status == "healthy":
            continue
        # In UTC, as everything in this table.
        when = source.last_success
        last = f"; last success {when.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if when else ""
        code = f"source_{fresh.status}"
        yield Finding(
            "market",
            source.source,
            _SOURCE_HEALTH[fresh.status],
            code,
            f"{fresh.reason}{last}",
            since=source.last_failure if fresh.status == "error" else source.last_success,
            action=actions("market")[code],
        )


def _lost(table: str, days: Sequence[str]) -> Finding:
    reason = f"{len(days)} older days that were fetched are gone from the lake: {days[0]} to {days[-1]}"
    action = f"check the disk, then run `perennial market backfill --from {days[0]} --to {days[-1]}`"
    return Finding("market", table.split(".", 1)[1], "broken", "history_lost", reason, action=action)


def _history(days: int) -> Finding:
    reason = (
        f"{days} older days have gaps or are not what was recorded, outside the window that heals itself "
        "(market.history_gaps)"
    )
    action = actions("market")["history_gaps"]
    return Finding("market", "history", "stale", "history_gaps", reason, action=action)

"""Findings of the market: from the plan's verdicts, the work items and the sources' freshness.

Status, checks, watchdog and pages only show what is computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

from domain.market.catalogue import catalogue
from domain.market.completeness import STOCK_LIST_MISSING
from domain.market.freshness import freshness
from domain.market.plan import EARLY, EXPLAINED
from domain.market.tables import DERIVED
from domain.market.trading import TradingCalendar, ranges
from domain.shared.health import ORDER, Finding, Health, SourceFreshness
from domain.shared.reasons import actions
from domain.shared.verdict import INPUT_MISSING, UNAVAILABLE, Plan
from domain.shared.work import ACTIVE, Work, split_key
from domain.shared.work_findings import plan_findings

NEVER_FETCHED = "never_fetched"
LATE_CODES = ("empty_answer", "empty_overdue", "not_announced")
"""What the source says to a machine whose clock is ahead, too."""
_HEALTH: Mapping[str, Health] = {UNAVAILABLE: "broken", EXPLAINED: "explained"}
"""What cannot be read needs a person if it lasts."""


def findings(
    plan: Plan,
    work: Sequence[Work],
    sources: Iterable[SourceFreshness],
    calendar: TradingCalendar,
    now: datetime,
    machine_now: datetime,
    holes: Mapping[str, Sequence[date]] | None = None,
    earlier: Mapping[str, Sequence[date]] | None = None,
) -> list[Finding]:
    """Return everything that is not healthy, the worst first. `work` are the work items that are not done.

    `holes` are, by table, the older days that were never fetched and that nobody fills by himself; `earlier`
    those before its first, of which another table has any.
    """
    found = plan_findings("market", plan, work, now, machine_now, _HEALTH, unshown=[EARLY])
    found += list(_sources(sources, calendar, now, found))
    under_way = {row.key for row in work if row.status in ACTIVE}
    found += _never_fetched(holes or {}, calendar, under_way, _hole)
    found += _never_fetched(earlier or {}, calendar, under_way, _earlier)
    return sorted(_with_causes(found), key=lambda f: f.rank)


def _with_causes(found: Sequence[Finding]) -> Iterator[Finding]:
    """Findings name what causes them: the reference that a day waits for, the day that a derived table waits
    for, the work that shows why a source fails."""
    derived = {t.table for t in DERIVED}
    of_source = {e.source: e.name for e in catalogue().endpoints}
    names = {e.name for e in (catalogue().calendar, catalogue().stocks)}
    references = [f for f in found if split_key(f.subject)[0] in names and ":" in f.subject]
    by_table: dict[str, str] = {}
    by_day: dict[str, str] = {}
    by_subject = sorted(found, key=lambda f: f.subject, reverse=True)
    for finding in sorted(by_subject, key=lambda f: ORDER[f.health], reverse=True):  # the worst stays
        table, day = split_key(finding.subject)
        if day and table not in derived and finding.health != "explained":
            by_day[day] = by_table[table] = finding.subject
    for finding in found:
        table, day = split_key(finding.subject)
        cause = None
        if table in derived:
            cause = by_day.get(day)
        elif finding.reason_code in (INPUT_MISSING, STOCK_LIST_MISSING) and references:
            cause = references[0].subject
        elif table in of_source:
            first = (
                references[0].subject
                if references and finding.reason_code == "source_never_ingested"
                else None
            )
            cause = by_table.get(of_source[table], first)
        yield replace(finding, caused_by=cause) if cause else finding


_SOURCE_HEALTH: Mapping[str, Health] = {"error": "broken", "stale": "stale", "never_ingested": "healing"}


def _sources(
    sources: Iterable[SourceFreshness], calendar: TradingCalendar, now: datetime, work: Sequence[Finding]
) -> Iterable[Finding]:
    """Yield a finding for each source that is not healthy. It needs a person only if no work, here as
    findings, will ask it again."""
    coming: dict[str, datetime] = {}
    for one in work:
        if one.health == "healing":
            table, moment = split_key(one.subject)[0], one.next_attempt or now
            coming[table] = min(moment, coming.get(table, moment))
    tables = {e.source: e.name for e in catalogue().endpoints}
    for source in sources:
        fresh = freshness(source, calendar, now)
        if fresh.status == "healthy":
            continue
        # In UTC, as everything in this table.
        when = source.last_success
        last = f"; last success {when.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if when else ""
        code, again = f"source_{fresh.status}", coming.get(tables.get(source.source, ""))
        yield Finding(
            "market",
            source.source,
            "healing" if again else _SOURCE_HEALTH[fresh.status],
            code,
            f"{fresh.reason}{last}",
            since=source.last_failure if fresh.status == "error" else source.last_success,
            next_attempt=again,
            action=actions("market")[code],
        )


def _never_fetched(
    holes: Mapping[str, Sequence[date]],
    calendar: TradingCalendar,
    under_way: Collection[str],
    finding: Callable[[Sequence[str], Sequence[date]], Finding],
) -> Iterator[Finding]:
    """Yield a finding for each run of days that lack the same tables."""
    lacking: dict[date, list[str]] = {}
    for table, days in holes.items():
        for day in days:
            if f"{table}:{day}" not in under_way:
                lacking.setdefault(day, []).append(table)
    by_tables: dict[tuple[str, ...], list[date]] = {}
    for day in sorted(lacking):
        by_tables.setdefault(tuple(lacking[day]), []).append(day)
    for tables, days in by_tables.items():
        for run in ranges(days, lambda before, after: not calendar.follow(before, after)):
            yield finding(tables, run)


def _hole(tables: Sequence[str], days: Sequence[date]) -> Finding:
    reason = f"{_count(days)} never fetched, though days before were: {', '.join(tables)}"
    action = actions("market")[NEVER_FETCHED].replace("RANGE", _range(tables, days))
    return Finding("market", f"history:{_span(days)}", "stale", NEVER_FETCHED, reason, action=action)


def _earlier(tables: Sequence[str], days: Sequence[date]) -> Finding:
    """Not fetched on purpose, or by a backfill that was killed: named, and no alarm."""
    words = "never fetched; other tables begin earlier than"
    reason = f"{_count(days)} {words}: {', '.join(tables)}"
    action = f"nothing if they are not wanted; else run `perennial market backfill {_range(tables, days)}`"
    return Finding("market", f"earlier:{_span(days)}", "explained", NEVER_FETCHED, reason, action=action)


def _span(days: Sequence[date]) -> str:
    return f"{days[0]}" if len(days) == 1 else f"{days[0]}…{days[-1]}"


def _count(days: Sequence[date]) -> str:
    return "1 trading day was" if len(days) == 1 else f"{len(days)} trading days were"


def _range(tables: Sequence[str], days: Sequence[date]) -> str:
    every = len(tables) == len(catalogue().daily)
    only = "" if every else "".join(f" --table {table}" for table in tables)
    return f"--from {days[0]} --to {days[-1]}{only}"

"""The health of carbon: the plan's verdicts, the ledger's work and feeds as findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from domain.carbon.feeds import FeedRead
from domain.carbon.plan import NO_FILES, NOT_INDEXED, UNCOUNTED, UNKNOWN_TYPE, YEAR_LOCKED, YEAR_OUTSIDE
from domain.carbon.tables import REPORTS
from domain.shared.health import Finding, Health, SourceFreshness
from domain.shared.printable import printable
from domain.shared.reasons import actions
from domain.shared.verdict import UNAVAILABLE, Plan
from domain.shared.work import Work
from domain.shared.work_findings import plan_findings

_HEALTH: Mapping[str, Health] = {
    UNAVAILABLE: "broken",
    NO_FILES: "broken",
    UNKNOWN_TYPE: "broken",
    YEAR_OUTSIDE: "broken",
    UNCOUNTED: "explained",
    YEAR_LOCKED: "explained",
}
FEED_PATIENCE = timedelta(hours=1)
NOTHING_READ: Mapping[str, FeedRead] = MappingProxyType({})


def findings(
    plan: Plan,
    work: Sequence[Work],
    now: datetime,
    machine_now: datetime,
    feeds: Iterable[SourceFreshness] = (),
    feed_reads: Mapping[str, FeedRead] = NOTHING_READ,
) -> list[Finding]:
    """Return everything that is not healthy, the worst first. `feeds` are the polled applications."""
    found = [
        replace(f, action=re.sub(r"\bYEAR\b", f.subject.rpartition(":")[2].rpartition("|")[2], f.action))
        for f in plan_findings("carbon", plan, work, now, machine_now, _HEALTH, unshown=[NOT_INDEXED])
    ]
    found += [_failing(feed, now) for feed in feeds if feed.fails]
    found += [
        _refused(key, scope, refused)
        for key, one in feed_reads.items()
        for scope, refused in one.refused.items()
    ]
    return sorted(found, key=lambda f: f.rank)


def unknown_inbox_entries(names: Sequence[str]) -> Finding:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    shown = ", ".join(map(printable, names[:3]))
    reason = f"{shown}{more}: not in units, factors or data, so it is not imported"
    return _broken("inbox", "inbox_unknown", reason)


def refused_file(path: str, report: str, at: datetime) -> Finding:
    return _broken(f"inbox/refused/{path}", "file_refused", printable(report), at)


def without_factor(year: int, counts: Mapping[str, Mapping[str, int]]) -> Finding:
    """The finding about results of a year that no factor fits, counted by module and type."""
    modules = [
        f"{module} ({', '.join(f'{name} {count:,}' for name, count in of.items())})"
        for module, of in counts.items()
    ]
    total = sum(count for of in counts.values() for count in of.values())
    have = "result has" if total == 1 else "results have"
    reason = f"{total:,} {have} no factor, and no mass in the report: {', '.join(modules)}"
    return _finding(f"{REPORTS.table}:{year}", "explained", "without_factor", reason)


def replaced_file(subject: str, old: str, new: str, rows: tuple[int, int], at: datetime) -> Finding:
    """The finding about a file that others may not know of yet."""
    reason = f"{new} took the place of {old}: {rows[0]:,} → {rows[1]:,} rows"
    return _finding(subject, "explained", "file_replaced", reason, at)


def not_indexed_uploads(count: int) -> Finding:
    reason = f"{count:,} staged uploads are not indexed: the ledger was lost, or restored from a backup"
    return _broken("uploads", NOT_INDEXED, reason)


def _failing(feed: SourceFreshness, now: datetime) -> Finding:
    """The finding about an application that does not answer. It is asked again and again; a person is needed
    when that has not helped for long, as with a wrong token."""
    reason = (feed.last_error or "the last attempt failed").splitlines()[0]
    lately = feed.last_success is not None and now - feed.last_success < FEED_PATIENCE
    return _finding(feed.source, "healing" if lately else "broken", "feed_error", reason, feed.last_failure)


def _refused(key: str, scope: str, refused: Mapping[str, Any]) -> Finding:
    first = refused.get("first", ())
    named = [f"entry {p['line']}: {p['column']} {p['value']!r} {p['reason']}" for p in first]
    examples = f": {'; '.join(named)}" if named else ""
    reason = f"{refused['entries']} of {refused['of']} entries of {scope} are refused{examples}"
    return _broken(key, "entries_refused", reason)


def _broken(subject: str, reason_code: str, reason: str, since: datetime | None = None) -> Finding:
    return _finding(subject, "broken", reason_code, reason, since)


def _finding(
    subject: str, health: Health, reason_code: str, reason: str, since: datetime | None = None
) -> Finding:
    action = actions("carbon")[reason_code]
    return Finding("carbon", subject, health, reason_code, reason, since, action=action)

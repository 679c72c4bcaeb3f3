"""The health of carbon: the plan's verdicts, the ledger's work and feeds as findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from domain.carbon.feeds import FeedRead
from domain.carbon.jobs import FEED_ENTRIES
from domain.carbon.plan import NOT_INDEXED, Plan, Verdict
from domain.shared.health import Finding, WorkRow
from domain.shared.printable import printable
from domain.shared.reasons import actions
from domain.shared.state import UNAVAILABLE
from domain.shared.work_findings import (
    UNDER_WAY,
    SourceRow,
    cancelled_finding,
    fails,
    latest_rows,
    not_started,
    work_finding,
)

_FOR_A_PERSON = ("no_files", "unknown_type", UNAVAILABLE)
"""Reason codes of verdicts that only a person can resolve."""
NOTHING_READ: Mapping[str, FeedRead] = MappingProxyType({})


def findings(
    plan: Plan,
    work: Sequence[WorkRow],
    now: datetime,
    machine_now: datetime,
    feeds: Iterable[SourceRow] = (),
    feed_reads: Mapping[str, FeedRead] = NOTHING_READ,
) -> list[Finding]:
    """Return everything that is not plainly healthy, the worst first. `feeds` are the polled applications."""
    judged = {v.key: v for v in plan.verdicts}
    latest = latest_rows(work, judged)
    found = [
        _of_verdict(v, latest.pop(v.key, None), now, machine_now)
        for v in plan.verdicts
        if v.state != "healthy" and v.reason_code != NOT_INDEXED  # one finding stands for all of them
    ]
    found += [
        work_finding("carbon", row, judged.get(row.key), now, machine_now)
        for row in latest.values()
        if row.status in UNDER_WAY or (row.status == "failed" and row.key not in judged)
    ]
    found += [_failing(feed) for feed in feeds if fails(feed)]
    found += [
        _refused(partition, scope, refused)
        for partition, one in feed_reads.items()
        for scope, refused in one.refused.items()
    ]
    return sorted(found, key=lambda f: f.rank)


def unknown_inbox_entries(names: Sequence[str]) -> Finding:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    shown = ", ".join(map(printable, names[:3]))
    reason = f"{shown}{more}: not in units, factors or data, so it is not imported"
    return _broken("inbox", "inbox_unknown", reason)


def not_indexed_uploads(count: int) -> Finding:
    reason = f"{count:,} staged uploads are not indexed: the ledger was lost, or restored from a backup"
    return _broken("uploads", NOT_INDEXED, reason)


def _failing(feed: SourceRow) -> Finding:
    reason = (feed.last_error or "the last attempt failed").splitlines()[0]
    return _broken(feed.source, "feed_error", reason, feed.last_failure)


def _refused(partition: str, scope: str, refused: Mapping[str, Any]) -> Finding:
    first = refused.get("first", ())
    named = [f"entry {p['line']}: {p['column']} {p['value']!r} {p['reason']}" for p in first]
    examples = f": {'; '.join(named)}" if named else ""
    reason = f"{refused['entries']} of {refused['of']} entries of {scope} are refused{examples}"
    return _broken(f"{FEED_ENTRIES}:{partition}", "entries_refused", reason)


def _broken(subject: str, reason_code: str, reason: str, since: datetime | None = None) -> Finding:
    return Finding(
        domain="carbon",
        subject=subject,
        health="broken",
        reason_code=reason_code,
        reason=reason,
        since=since,
        next_attempt=None,
        action=actions("carbon")[reason_code],
    )


def _of_verdict(verdict: Verdict, row: WorkRow | None, now: datetime, machine_now: datetime) -> Finding:
    if row is not None and row.status in (*UNDER_WAY, "failed") and verdict.state != "locked":
        return work_finding("carbon", row, verdict, now, machine_now)
    if row is not None and verdict.due and row.fingerprint == verdict.fingerprint:
        return cancelled_finding("carbon", row, verdict)
    # A type is removed from the catalogue on purpose; an application reports an unknown one by mistake.
    uncounted = verdict.reason_code == "unknown_type" and verdict.table != FEED_ENTRIES
    locked, lost = verdict.state == "locked", verdict.reason_code in _FOR_A_PERSON
    action = "nothing; it comes after them" if verdict.state == "waits" else not_started("carbon")
    if locked or lost:
        action = actions("carbon")[verdict.reason_code].replace("YEAR", str(verdict.year))
    return Finding(
        domain="carbon",
        subject=verdict.key,
        health="explained" if locked or uncounted else "broken" if lost else "healing",
        reason_code=verdict.reason_code,
        reason=verdict.why,
        since=verdict.since,
        next_attempt=None if locked or lost else now,
        action=action,
    )

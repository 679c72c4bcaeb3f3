"""The health of carbon: the plan's verdicts and the ledger's work told as findings."""

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
"""Reason codes of verdicts that nothing but a person mends."""
NOTHING_READ: Mapping[str, FeedRead] = MappingProxyType({})


def findings(
    plan: Plan,
    work: Sequence[WorkRow],
    now: datetime,
    machine_now: datetime,
    feeds: Iterable[SourceRow] = (),
    feed_reads: Mapping[str, FeedRead] = NOTHING_READ,
) -> list[Finding]:
    """Everything that is not plainly healthy, the worst first. `feeds` are the applications listened to."""
    judged = {v.key: v for v in plan.verdicts}
    latest = latest_rows(work, judged)
    found = [
        _told(v, latest.pop(v.key, None), now, machine_now)
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
        _refused(partition, place, told)
        for partition, one in feed_reads.items()
        for place, told in one.refused.items()
    ]
    return sorted(found, key=lambda f: f.rank)


def _failing(feed: SourceRow) -> Finding:
    return Finding(
        domain="carbon",
        subject=feed.source,
        health="broken",
        reason_code="feed_error",
        reason=(feed.last_error or "the last attempt failed").splitlines()[0],
        since=feed.last_failure,
        next_attempt=None,
        action=actions("carbon")["feed_error"],
    )


def unknown_inbox_entries(names: Sequence[str]) -> Finding:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    shown = ", ".join(map(printable, names[:3]))
    return Finding(
        domain="carbon",
        subject="inbox",
        health="broken",
        reason_code="inbox_unknown",
        reason=f"{shown}{more}: not in units, factors or data, so it is not imported",
        since=None,
        next_attempt=None,
        action=actions("carbon")["inbox_unknown"],
    )


def not_indexed_uploads(count: int) -> Finding:
    return Finding(
        domain="carbon",
        subject="uploads",
        health="broken",
        reason_code=NOT_INDEXED,
        reason=f"{count:,} staged uploads are not indexed: the ledger was lost, or restored from a backup",
        since=None,
        next_attempt=None,
        action=actions("carbon")[NOT_INDEXED],
    )


def _refused(partition: str, place: str, told: Mapping[str, Any]) -> Finding:
    """The others were taken; nobody sits at a terminal to be told of these."""
    named = [f"entry {p['line']}: {p['column']} {p['value']!r} {p['reason']}" for p in told.get("first", ())]
    first = f": {'; '.join(named)}" if named else ""
    return Finding(
        domain="carbon",
        subject=f"{FEED_ENTRIES}:{partition}",
        health="broken",
        reason_code="entries_refused",
        reason=f"{told['entries']} of {told['of']} entries of {place} are refused{first}",
        since=None,
        next_attempt=None,
        action=actions("carbon")["entries_refused"],
    )


def _told(verdict: Verdict, row: WorkRow | None, now: datetime, machine_now: datetime) -> Finding:
    if row is not None and row.status in (*UNDER_WAY, "failed") and verdict.state != "locked":
        return work_finding("carbon", row, verdict, now, machine_now)
    if row is not None and verdict.due and row.fingerprint == verdict.fingerprint:
        return cancelled_finding("carbon", row, verdict)
    # That a type was taken out of the catalogue, somebody meant; what an application tells, nobody did.
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

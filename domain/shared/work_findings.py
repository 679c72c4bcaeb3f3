"""Findings from work items and verdicts, alike in every domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from domain.shared.health import Finding, Health, WorkRow
from domain.shared.reasons import actions

NOT_STARTED = "nothing with a running daemon (`make up`); without one run `perennial {domain} heal`"
BY_HAND = "see `perennial work show ID`, correct the cause, then `perennial work retry ID`"
UNDER_WAY = ("queued", "deferred", "running")


class Wanted(Protocol):
    """What a finding needs of a plan's verdict."""

    @property
    def key(self) -> str: ...
    @property
    def due(self) -> bool: ...
    @property
    def reason_code(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def since(self) -> datetime | None: ...


class SourceRow(Protocol):
    """What a finding needs of a source: when it answered last, and when it failed."""

    @property
    def source(self) -> str: ...
    @property
    def last_success(self) -> datetime | None: ...
    @property
    def last_failure(self) -> datetime | None: ...
    @property
    def last_error(self) -> str | None: ...


def fails(source: SourceRow) -> bool:
    """Whether its last attempt failed."""
    success, failure = source.last_success, source.last_failure
    return failure is not None and (success is None or failure > success)


def not_started(domain: str) -> str:
    return NOT_STARTED.format(domain=domain)


def latest_rows(work: Sequence[WorkRow], judged: Mapping[str, Wanted]) -> dict[str, WorkRow]:
    """Of the rows of a key the one that tells of its present: what is under way; what forbids that which is
    wanted now; else the last that failed, or was called off."""

    def weight(row: WorkRow) -> tuple[bool, bool, bool]:
        wanted = judged.get(row.key)
        same = wanted is not None and wanted.due and wanted.fingerprint == row.fingerprint
        return (row.status in UNDER_WAY, same, row.status == "failed")

    # Sorting keeps the order of equals, so the newest of them stays the last.
    return {row.key: row for row in sorted(work, key=weight)}


def work_finding(
    domain: str,
    row: WorkRow,
    verdict: Wanted | None,
    now: datetime,
    machine_now: datetime,
) -> Finding:
    health: Health = "broken" if row.status == "failed" else "healing"
    code = row.reason_code or (verdict.reason_code if verdict else "") or row.status
    # Further lines of an error are its remedy; a finding has `action` for that.
    why = row.error.splitlines()[0] if row.error else verdict.why if verdict else row.status
    if row.error and verdict and verdict.due and verdict.why not in why:
        why = f"{why} ({verdict.why})"
    next_attempt: datetime | None = row.not_before or now
    otherwise = BY_HAND if health == "broken" else not_started(domain)
    action = actions(domain).get(code, otherwise).replace("ID", str(row.id))
    if row.status == "running":
        next_attempt, action = None, "nothing; it is being worked on"
        if row.lease_until is not None and row.lease_until < machine_now:
            code = "worker_lost"
            ended = f"{row.lease_until:%Y-%m-%d %H:%M:%S} UTC"
            why = f"the run that had it, {row.run_id}, shows no sign of life; its lease ended at {ended}"
            next_attempt, action = now, not_started(domain)
    return Finding(
        domain=domain,
        subject=row.key,
        health=health,
        reason_code=code,
        reason=why,
        since=min(row.created_at, verdict.since) if verdict and verdict.since else row.created_at,
        next_attempt=None if health == "broken" else next_attempt,
        action=action,
        work_id=row.id,
        attempts=row.attempts,
    )


def cancelled_finding(domain: str, row: WorkRow, verdict: Wanted) -> Finding:
    """Return the finding of due work that a person cancelled for exactly this reason."""
    when = f" {row.finished_at:%Y-%m-%d %H:%M} UTC" if row.finished_at else ""
    return Finding(
        domain=domain,
        subject=verdict.key,
        health="explained",
        reason_code="called_off",
        reason=f"its work was cancelled{when} ({verdict.why})",
        since=row.finished_at,
        next_attempt=None,
        action=actions(domain)["called_off"].replace("ID", str(row.id)),
        work_id=row.id,
        attempts=row.attempts,
    )

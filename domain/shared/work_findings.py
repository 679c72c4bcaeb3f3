"""Findings from work items and verdicts, alike in every domain."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from domain.shared.health import Finding, Health
from domain.shared.reasons import actions
from domain.shared.verdict import Plan, Verdict
from domain.shared.work import CANCELLED, Refusals, Work

BY_HAND = "see `perennial work show ID`, correct the cause, then `perennial work retry ID`"
_WAITS = {"queued": "a run is to do it", "running": "a run does it", "deferred": "tried, and put off"}
WORK_WAITS = "work_waits"
CALLED_OFF = "called_off"
UNDER_WAY = ("queued", "deferred", "running")


def not_started(domain: str) -> str:
    return f"nothing with a running daemon (`perennial up`); without one run `perennial {domain} heal`"


def plan_findings(
    domain: str,
    plan: Plan,
    work: Sequence[Work],
    now: datetime,
    machine_now: datetime,
    health: Mapping[str, Health],
    unshown: Collection[str] = (),
) -> list[Finding]:
    """Return a finding for each verdict with a reason, and for each work item without such a verdict.

    `health` is that of verdicts by reason code, others are healing; `unshown` reason codes are no findings.
    """
    judged = {v.key: v for v in plan.verdicts}
    latest = _latest_rows(work, judged)
    found = [
        _verdict_finding(domain, v, latest.pop(v.key, None), now, machine_now, health)
        for v in plan.verdicts
        if v.reason_code and v.reason_code not in unshown
    ]
    return found + [
        _work_finding(domain, row, judged.get(key), now, machine_now)
        for key, row in latest.items()
        if row.status in UNDER_WAY or (row.status == "failed" and key not in judged)
    ]


class Backlog(Protocol):
    """The unfinished work of a tenant."""

    @property
    def due(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def running(self) -> int: ...
    @property
    def oldest(self) -> datetime | None: ...


def pulled_findings(
    domain: str, table: str, backlog: Mapping[str, Backlog], refused: Sequence[Refusals], now: datetime
) -> list[Finding]:
    """Return one finding for what each tenant of a pulled kind has under way, and one for each reason for
    which its work failed or was cancelled: there may be thousands of either."""
    found = [
        Finding(
            domain,
            f"{table}:{tenant}",
            "healing",
            WORK_WAITS,
            f"{one.waiting:,} wait, {one.running:,} are being worked on",
            since=one.oldest,
            next_attempt=now if one.due else None,
            action=not_started(domain),
            needs_run=True,
        )
        for tenant, one in backlog.items()
    ]
    return found + [_refusal(domain, table, one) for one in refused]


def _refusal(domain: str, table: str, of: Refusals) -> Finding:
    """The finding about work that failed or was cancelled for one reason. It names the newest."""
    newest, cancelled = of.newest, of.newest.status == CANCELLED
    why = newest.error or ("a person cancelled it" if cancelled else newest.reason_code)
    code = CALLED_OFF if cancelled else newest.reason_code
    reason = f"{newest.key}: {why.splitlines()[0]}"
    return Finding(
        domain,
        f"{table}:{newest.tenant}",
        "explained" if cancelled else "broken",
        code,
        reason if of.count == 1 else f"{of.count:,} {newest.status} ({reason})",
        since=of.since or newest.finished_at or newest.updated_at,
        action=actions(domain).get(code, BY_HAND).replace("ID", str(newest.id)),
        work_id=newest.id,
        attempts=newest.attempts,
    )


def _verdict_finding(
    domain: str,
    verdict: Verdict,
    row: Work | None,
    now: datetime,
    machine_now: datetime,
    health: Mapping[str, Health],
) -> Finding:
    code, known = verdict.reason_code, actions(domain).get(verdict.reason_code)
    needs_run = known is None and verdict.due
    # Of a partition that a person decided about, or has to, work that failed or waits says nothing.
    decided = verdict.state == "waiting" and health.get(code) in ("explained", "broken")
    if row is not None and row.status in (*UNDER_WAY, "failed") and not decided:
        return _work_finding(domain, row, verdict, now, machine_now)
    if row is not None and verdict.due and row.fingerprint == verdict.fingerprint:
        return _cancelled_finding(domain, row, verdict)
    return Finding(
        domain=domain,
        subject=verdict.key,
        health=health.get(code, "healing"),
        reason_code=code,
        reason=verdict.reason,
        since=verdict.since,
        next_attempt=now if verdict.due else verdict.next_attempt,
        action=known or (not_started(domain) if needs_run else "nothing"),
        needs_run=needs_run,
    )


def _latest_rows(work: Sequence[Work], judged: Mapping[str, Verdict]) -> dict[str, Work]:
    """Return for each key the row that counts: one under way, else one that refuses what is due now, else
    the last that failed or was cancelled."""

    def weight(row: Work) -> tuple[bool, bool, bool]:
        verdict = judged.get(row.key)
        same = verdict is not None and verdict.due and verdict.fingerprint == row.fingerprint
        return (row.status in UNDER_WAY, same, row.status == "failed")

    # Sorting keeps the order of equals, so the newest of them stays the last.
    return {row.key: row for row in sorted(work, key=weight)}


def _work_finding(
    domain: str,
    row: Work,
    verdict: Verdict | None,
    now: datetime,
    machine_now: datetime,
) -> Finding:
    health: Health = "broken" if row.status == "failed" else "healing"
    code = row.reason_code or (verdict.reason_code if verdict else "") or row.status
    # Further lines of an error are its remedy; a finding has `action` for that.
    why = (
        row.error.splitlines()[0]
        if row.error
        else verdict.reason
        if verdict
        else _WAITS.get(row.status, row.status)
    )
    if row.error and verdict and verdict.due and verdict.reason not in why:
        why = f"{why} ({verdict.reason})"
    next_attempt: datetime | None = row.not_before
    known = actions(domain).get(code)
    needs_run = known is None and health != "broken" and row.status != "running"
    otherwise = BY_HAND if health == "broken" else not_started(domain)
    action = (known or otherwise).replace("ID", str(row.id))
    if row.status == "running":
        next_attempt, action = None, "nothing; it is being worked on"
    found = Finding(
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
        run_id=row.run_id if row.status == "running" else None,
        needs_run=needs_run,
    )
    if row.status == "running" and row.lease_until is not None and row.lease_until < machine_now:
        ended = f"{row.lease_until:%Y-%m-%d %H:%M:%S} UTC"
        why = f"the run that had it, {row.run_id}, shows no sign of life; its lease ended at {ended}"
        return lost(found, why, now)
    return found


def lost(finding: Finding, reason: str, now: datetime) -> Finding:
    """Return the finding about running work whose run is gone: another run is to do it."""
    return replace(
        finding,
        reason_code="worker_lost",
        reason=reason,
        next_attempt=now,
        action=not_started(finding.domain),
        run_id=None,
        needs_run=True,
    )


def _cancelled_finding(domain: str, row: Work, verdict: Verdict) -> Finding:
    """Return the finding of due work that a person cancelled for exactly this reason."""
    when = f" {row.finished_at:%Y-%m-%d %H:%M} UTC" if row.finished_at else ""
    return Finding(
        domain,
        verdict.key,
        "explained",
        CALLED_OFF,
        f"its work was cancelled{when} ({verdict.reason})",
        since=row.finished_at,
        action=actions(domain)[CALLED_OFF].replace("ID", str(row.id)),
        work_id=row.id,
        attempts=row.attempts,
    )

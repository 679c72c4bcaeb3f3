"""The health of carbon: the plan's verdicts and the ledger's work told as findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from domain.carbon.plan import Plan, Verdict
from domain.shared.health import Finding, WorkRow
from domain.shared.telling import (
    EVERYWHERE,
    UNDER_WAY,
    latest_rows,
    not_started,
    told_as_called_off,
    told_of_work,
)

ACTIONS: Mapping[str, str] = {
    **EVERYWHERE,
    "staging_damaged": "upload the file again, or put the staged file back; then `perennial work retry ID`",
    "implausible_mass": "mend the amount or the factor it names and upload that file again",
    "year_locked": "nothing; `perennial carbon unlock YEAR --reason …` if its report shall change after all",
    "no_files": "upload the file of this partition again",
    "input_missing": "nothing; its inputs come first",
}
"""By the reason codes of errors and verdicts. What is not here needs nobody while it is healing."""


def findings(plan: Plan, work: Sequence[WorkRow], now: datetime, machine_now: datetime) -> list[Finding]:
    """Everything that is not plainly healthy, the worst first."""
    judged = {v.key: v for v in plan.verdicts}
    latest = latest_rows(work, judged)
    found = [
        _told(v, latest.pop(v.key, None), now, machine_now) for v in plan.verdicts if v.state != "healthy"
    ]
    found += [
        told_of_work("carbon", row, judged.get(row.key), ACTIONS, now, machine_now)
        for row in latest.values()
        if row.status in UNDER_WAY or (row.status == "failed" and row.key not in judged)
    ]
    return sorted(found, key=lambda f: f.rank)


def _told(verdict: Verdict, row: WorkRow | None, now: datetime, machine_now: datetime) -> Finding:
    if row is not None and row.status in (*UNDER_WAY, "failed") and verdict.state != "locked":
        return told_of_work("carbon", row, verdict, ACTIONS, now, machine_now)
    if row is not None and verdict.due and row.fingerprint == verdict.fingerprint:
        return told_as_called_off("carbon", row, verdict, ACTIONS)
    locked, lost = verdict.state == "locked", verdict.reason_code == "no_files"
    action = "nothing; it comes after them" if verdict.state == "waits" else not_started("carbon")
    if locked or lost:
        action = ACTIONS[verdict.reason_code].replace("YEAR", str(verdict.year))
    return Finding(
        domain="carbon",
        subject=verdict.key,
        health="explained" if locked else "broken" if lost else "healing",
        reason_code=verdict.reason_code,
        reason=verdict.why,
        since=verdict.since,
        next_attempt=None if locked or lost else now,
        action=action,
    )

"""`perennial status`: what is unhealthy, and why. Imports no Dagster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from domain.shared.health import summary
from orchestration.cli.output import Json, answer, document, table
from orchestration.environments import load_settings

if TYPE_CHECKING:
    from domain.shared.health import Finding


def status(json: Json = False) -> None:
    """Every unhealthy thing: what, why, since when, what happens next, what a person can do.

    Exit code 1 if a person has to do something.
    """
    from orchestration.health import platform_findings

    settings = load_settings()
    found = platform_findings(settings)
    broken = any(f.health in ("broken", "stale") for f in found)
    if json:
        document(
            {
                "healthy": not found,
                "needs_a_person": broken,
                "summary": summary(found),
                "checked_at": settings.business_clock()(),
                "findings": [f.as_json() for f in found],
            }
        )
    else:
        if found:
            table(FINDING, [_row(f) for f in found])
        answer(summary(found))
    raise typer.Exit(1 if broken else 0)


FINDING = (
    "health",
    "domain",
    "subject",
    "reason",
    "since (UTC)",
    "next attempt (UTC)",
    "what a person can do",
)


def _row(f: Finding) -> tuple[Any, ...]:
    reason = f"{f.reason_code}: {f.reason.splitlines()[0]}"
    return f.health, f.domain, f.subject, reason, f.since, f.next_attempt, f.action

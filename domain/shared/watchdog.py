"""The watchdog's one line on whether a domain does its work, from its findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.shared.finding_groups import group
from domain.shared.health import Finding

PATIENCE = timedelta(hours=1)
"""What is due is done within minutes; what waits longer is a problem."""


@dataclass(frozen=True)
class Watch:
    ok: bool
    line: str
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What people should know and no alarm is worth: a locked year, results without a factor."""


def watch(domain: str, found: Sequence[Finding], kept: str, now: datetime) -> Watch:
    """Return whether nothing needs a person or waits for long. `kept`: what there is, such as "3 reports"."""
    late = [f for f in found if f.health in ("broken", "stale") or _waits_long(f, now)]
    problems = _lines(late)
    notes = _lines([f for f in found if f.health == "explained"])
    if problems:
        return Watch(False, f"ALERT {domain}: {'; '.join(problems)}", problems, notes)
    waits = len(found) - len(late) - sum(f.health == "explained" for f in found)
    line = f"OK {domain}: {kept}, "
    line += f"{waits:,} pieces of work under way" if waits else "all current"
    return Watch(True, "; ".join((line, *(f"note: {note}" for note in notes))), (), notes)


def _waits_long(finding: Finding, now: datetime) -> bool:
    waits = finding.health == "healing" and finding.since is not None
    return waits and finding.since is not None and now - finding.since > PATIENCE


def _lines(found: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(f"{'; '.join(map(str, g.spans))}: {g.reason}" for g in group(found))

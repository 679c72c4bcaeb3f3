"""How long a report waits for the recalculations of its year.

It waits while work is due or running, so that many recalculations are summed once. Under continuous edits it
is summed after ten minutes all the same, and names the types that are old.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from domain.carbon.observed import Observed
from domain.carbon.tables import EMISSIONS, REPORTS
from domain.shared.state import PartitionState
from domain.shared.table import ABSENT

PATIENCE = timedelta(minutes=10)
"""Ordinary bursts of edits end sooner, and are summed once."""

UNSUMMED_SINCE = "unsummed_since"
"""In the detail of emissions: since when the report lacks them; their commit may be of a later edit."""


def unsummed_since(seen: Observed, partition: str) -> datetime | None:
    """Return since when the report lacks the emissions that are about to be replaced; None if it has them."""
    name, year = partition.split("|", 1)
    old = seen.state(EMISSIONS.table, partition)
    nothing = old.recorded in (None, ABSENT)
    if seen.state(REPORTS.table, year).inputs.get(name) == (None if nothing else str(old.recorded)):
        return None
    return _since(old)


def is_spent(
    now: datetime | None,
    sums: PartitionState,
    inputs: Mapping[str, str],
    made_from: Mapping[str, PartitionState],
) -> bool:
    """Return whether these sums have been out of date for too long, counted from when they were made."""
    moments = [
        _since(state)
        for name, state in made_from.items()
        if state.untouched and inputs.get(name) != sums.inputs.get(name)
    ]
    return now is not None and _is_long_ago(now, sums.checked_at, [m for m in moments if m is not None])


def _is_long_ago(now: datetime, made: datetime | None, moments: Collection[datetime]) -> bool:
    return bool(moments) and now - max(min(moments), made or min(moments)) >= PATIENCE


def _since(state: PartitionState) -> datetime | None:
    since = state.detail.get(UNSUMMED_SINCE)
    return datetime.fromisoformat(since) if since else state.committed_at

"""The watchdog's one line on whether the warehouse is alive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime

from domain.market.catalogue import Catalogue
from domain.market.derived import coverage_status
from domain.market.freshness import freshness
from domain.market.observed import Observed, Rules
from domain.market.trading import due_at, newest_published, shanghai
from domain.shared.health import SourceFreshness
from domain.shared.table import ABSENT

DAYS_BEHIND = 3
"""How many trading days the newest day in the lake may be behind the newest one published."""


@dataclass(frozen=True)
class Watch:
    ok: bool
    line: str
    latest_day: date | None
    problems: tuple[str, ...]


def watch(
    catalogue: Catalogue, seen: Observed, sources: Iterable[SourceFreshness], now: datetime, rules: Rules
) -> Watch:
    """Healthy if the newest day is near and whole and every source has answered lately."""
    problems = list(_calendar(seen, now))
    newest = newest_published(seen.calendar, now, rules.daily_at)
    latest = _latest_day(catalogue, seen, newest) if newest else None
    if newest is None or latest is None:
        problems.append("no day in the gap window has data")
    else:
        behind = len(seen.calendar.between(latest, newest)) - 1
        if behind > DAYS_BEHIND:
            problems.append(f"newest day {latest} is {behind} trading days behind {newest}")
        problems += _incomplete(catalogue, seen, latest, now, rules)
    for source in sources:
        fresh = freshness(source, seen.calendar, now)
        if fresh.status != "healthy":
            problems.append(f"{source.source}: {fresh.reason.splitlines()[0]}")
    line = "; ".join(problems) if problems else f"newest day {latest} is complete, all sources answered"
    return Watch(not problems, f"{'OK' if not problems else 'ALERT'} market: {line}", latest, tuple(problems))


def _calendar(seen: Observed, now: datetime) -> Iterable[str]:
    year = shanghai(now).year
    if year not in seen.calendar.years:
        yield f"the trading calendar of {year} is missing"


def _latest_day(catalogue: Catalogue, seen: Observed, newest: date) -> date | None:
    """Return the newest due day of which any table has rows, readable or not."""
    names = {e.name for e in catalogue.daily}
    days = [
        date.fromisoformat(partition)
        for (table, partition), state in seen.states.items()
        if table in names and state.version != ABSENT
    ]
    return max((d for d in days if d <= newest), default=None)


def _incomplete(
    catalogue: Catalogue, seen: Observed, day: date, now: datetime, rules: Rules
) -> Iterable[str]:
    for endpoint in catalogue.daily:
        if now < due_at(endpoint, day, rules.daily_at):
            continue
        state = seen.state(endpoint.name, str(day))
        expected = seen.expected.get((endpoint.name, str(day)))
        status = coverage_status(endpoint, state, expected)
        if status not in ("complete", "asked", "explained"):
            of = f" of {expected:,}" if expected else ""
            yield f"{endpoint.name} of {day} is {status} ({state.version.rows:,}{of} rows)"

"""The watchdog's one line on whether the warehouse is alive."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from domain.market.catalogue import Catalogue
from domain.market.freshness import freshness
from domain.market.observed import Observed, Rules
from domain.market.plan import is_gap
from domain.market.tables import DERIVED
from domain.market.trading import due_at, newest_published, published_at, shanghai
from domain.shared.health import SourceFreshness
from domain.shared.table import ABSENT
from domain.shared.verdict import Plan, Verdict
from domain.shared.watchdog import Watch

LATE = timedelta(hours=2)
"""After its publication a day that was never fetched is late."""
UNDER_WAY_FOR = timedelta(hours=1)
"""But not before the daily pass had this long to fetch it."""
ROUTINE = ("daily_refresh", "revised")


@dataclass(frozen=True)
class MarketWatch(Watch):
    latest_day: date | None = None


def watch(
    catalogue: Catalogue,
    plan: Plan,
    seen: Observed,
    sources: Iterable[SourceFreshness],
    now: datetime,
    rules: Rules,
    explained: Collection[str] = (),
) -> MarketWatch:
    """Healthy if no day of any age is late or not as it should be and every source has answered lately.

    `explained` are the partitions that a person has called off.
    """
    problems = list(_calendar(seen, now))
    newest = newest_published(seen.calendar, now, rules.daily_at)
    latest = _latest_day(catalogue, seen, newest) if newest else None
    if newest is None or latest is None:
        problems.append("no day in the gap window has data")
    else:
        wrong = alarming(catalogue, plan, seen, now, rules)
        problems += _in_words([v for v in wrong if v.key not in explained])
    for source in sources:
        fresh = freshness(source, seen.calendar, now)
        if fresh.status != "healthy":
            problems.append(f"{source.source}: {fresh.reason.splitlines()[0]}")
    if problems or newest is None or latest is None:
        alert = f"ALERT market: {'; '.join(problems)}"
        return MarketWatch(False, alert, tuple(problems), latest_day=latest)
    behind = len(seen.calendar.between(latest, newest)) - 1
    line = f"newest day {latest} is complete, {behind} trading days behind; all sources answered"
    return MarketWatch(True, f"OK market: {line}", latest_day=latest)


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


def alarming(catalogue: Catalogue, plan: Plan, seen: Observed, now: datetime, rules: Rules) -> list[Verdict]:
    """Return the verdicts that a person should know of: days that are late or wrong, at any age."""
    return [v for v in plan.verdicts if _alarms(catalogue, v, seen, now, rules)]


def _alarms(catalogue: Catalogue, verdict: Verdict, seen: Observed, now: datetime, rules: Rules) -> bool:
    """Whether a verdict is more than routine, or a day that is still being fetched."""
    if verdict.state == "unavailable" or verdict.reason_code == "partial":
        return True
    if not is_gap(verdict) or verdict.reason_code in ROUTINE:
        return False
    made = not seen.state(verdict.table, verdict.partition).never_made
    if verdict.table in {e.name for e in (catalogue.calendar, catalogue.stocks)} or (
        made and verdict.reason_code != "inputs_changed"
    ):
        return True
    endpoints = [e for e in catalogue.daily if e.name == verdict.table] or catalogue.daily
    day = date.fromisoformat(verdict.partition)
    return now >= max(
        max(published_at(e, day) + LATE, due_at(e, day, rules.daily_at) + UNDER_WAY_FOR) for e in endpoints
    )


def _in_words(wrong: Sequence[Verdict]) -> Iterator[str]:
    """Yield a sentence for each table and state, without what only follows from another table of its day."""
    derived = {t.table for t in DERIVED}
    days = {v.partition for v in wrong if v.table not in derived}
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for v in wrong:
        if v.table not in derived or v.partition not in days:
            word = v.reason_code if v.reason_code == "partial" else str(v.state)
            groups.setdefault((v.table, word), []).append(v)
    for (table, word), of in groups.items():
        first, last = of[-1].partition, of[0].partition
        if len(of) > 1:
            yield f"{table} is {word} on {len(of)} days, {first} to {last}"
        else:
            yield f"{table} of {last} is {word} ({of[0].reason})"

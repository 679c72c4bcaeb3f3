"""The market plan: from what was observed and a moment, what should be done and why.

A pure function. Everything that wants work done (sensor, schedule, command) calls it, and `perennial plan
market` prints it; so a day is a gap for the same reason everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Literal

from domain.market.catalogue import Catalogue, Endpoint
from domain.market.completeness import Judgement, judge, refetch_at
from domain.market.derived import adjusted_inputs, coverage_inputs
from domain.market.observed import Cell, Observed, Rules
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, REVISIONS
from domain.market.trading import at, due_at, newest_published, shanghai
from domain.shared.backoff import Backoff
from domain.shared.hashing import digest
from domain.shared.table import ABSENT, ALL
from domain.shared.work import Item, Kind

FILL = "market.fill"
"""A day of a table, fetched or derived."""
REFRESH = "market.refresh"
"""A reference: the calendar of a year, the stock list."""

# No maximum of attempts: inside the gap window a transient failure is never final. No jitter: the tables of a
# day that failed together are tried again together, in one run.
_ACROSS_RUNS = Backoff(base=timedelta(seconds=60), factor=2, cap=timedelta(hours=1))
KINDS = (Kind(FILL, transient=_ACROSS_RUNS), Kind(REFRESH, transient=_ACROSS_RUNS))

State = Literal["healthy", "explained", "early", "gap", "recheck", "derive", "refresh", "blocked"]
"""healthy, explained, early (not due yet): nothing to do
gap, recheck, derive, refresh: work, each with its own urgency
blocked: it cannot be judged before something else is there
"""

PRIORITY = {"refresh": 30, "gap": 20, "derive": 10, "recheck": 0}


@dataclass(frozen=True)
class Verdict:
    """What the plan thinks of one partition of one table."""

    table: str
    partition: str
    state: State
    reason_code: str
    why: str
    fingerprint: str = ""

    @property
    def key(self) -> str:
        return f"{self.table}:{self.partition}"

    @property
    def due(self) -> bool:
        return self.state in PRIORITY

    def item(self) -> Item:
        return Item(
            kind=REFRESH if self.state == "refresh" else FILL,
            key=self.key,
            fingerprint=self.fingerprint,
            reason_code=self.reason_code,
            priority=PRIORITY[self.state],
        )


@dataclass(frozen=True)
class Plan:
    verdicts: tuple[Verdict, ...]

    @property
    def due(self) -> tuple[Verdict, ...]:
        return tuple(v for v in self.verdicts if v.due)

    @property
    def gaps(self) -> tuple[Verdict, ...]:
        return tuple(v for v in self.verdicts if v.state == "gap")

    def take(self, limit: int, live: Callable[[str], bool]) -> tuple[Verdict, ...]:
        """What one look asks for: work already under way, and at most `limit` further days, newest first.

        `live` says whether a key has a row waiting or running. Gaps come before rechecks.
        """
        chosen = [v for v in self.due if v.state == "refresh" or live(v.key)]
        for states in (("gap", "derive"), ("recheck",)):
            fresh = [v for v in self.due if v.state in states and not live(v.key)]
            days = sorted({v.partition for v in fresh}, reverse=True)[:limit]
            chosen += [v for v in fresh if v.partition in days]
        return tuple(chosen)


def plan(catalogue: Catalogue, seen: Observed, now: datetime, rules: Rules) -> Plan:
    """Everything the look at `now` has an opinion on: references first, then days, newest first."""
    verdicts = list(_references(catalogue, seen, now, rules))
    for day in reversed(window(seen, now, rules)):
        verdicts += judge_day(catalogue, day, seen, now, rules)
    inside = {v.partition for v in verdicts}
    verdicts += [
        _verdict(REVISIONS.table, str(day), "derive", "revised", "the source revised this day")
        for day in sorted(seen.pending_revisions, reverse=True)
        if str(day) not in inside and day not in seen.busy_days
    ]
    return Plan(tuple(verdicts))


def judge_day(catalogue: Catalogue, day: date, seen: Observed, now: datetime, rules: Rules) -> list[Verdict]:
    """What the plan thinks of one open day: its fetched tables, then what derives from them."""
    fetched = [_judge_day(e, day, seen, now, rules) for e in catalogue.daily]
    return [*fetched, *_derived(catalogue, day, seen)]


def window(seen: Observed, now: datetime, rules: Rules) -> tuple[date, ...]:
    """The open days a look judges, oldest first.

    The last `window_days` days up to today, and never fewer than `limit` open days: a long holiday must not
    hide the days before it.
    """
    today = shanghai(now).date()
    days = set(seen.calendar.between(today - timedelta(days=rules.window_days), today))
    newest = newest_published(seen.calendar, now, rules.daily_at)
    if newest:
        days |= set(seen.calendar.newest(rules.limit, newest))
    return tuple(sorted(days))


def years_wanted(now: datetime) -> tuple[int, ...]:
    """The calendar years to keep: this one, from December the next, in January the one before."""
    today = shanghai(now).date()
    before = [today.year - 1] if today.month == 1 else []
    return (*before, today.year, *([today.year + 1] if today.month == 12 else []))


def _references(catalogue: Catalogue, seen: Observed, now: datetime, rules: Rules) -> Iterator[Verdict]:
    for year in years_wanted(now):
        yield _reference(catalogue.calendar, str(year), seen, now, rules)
    yield _reference(catalogue.stocks, ALL, seen, now, rules)


def _reference(endpoint: Endpoint, partition: str, seen: Observed, now: datetime, rules: Rules) -> Verdict:
    """References are asked for once a day, from their hour of publication."""
    cell = seen.cell(endpoint.name, partition)
    if fault := _fault(cell):
        return _verdict(endpoint.name, partition, "refresh", *fault, cell, rules)
    hour = at(shanghai(now).date(), max(endpoint.published, time(9, 0)))
    last = hour if now >= hour else hour - timedelta(days=1)
    if cell.checked_at is not None and cell.checked_at < last:
        why = f"last asked {shanghai(cell.checked_at):%Y-%m-%d %H:%M}, due since {last:%Y-%m-%d %H:%M}"
        return _verdict(endpoint.name, partition, "refresh", "daily_refresh", why, cell, rules, str(last))
    return _verdict(endpoint.name, partition, "healthy", "", f"{cell.version.rows:,} rows")


def _fault(cell: Cell) -> tuple[str, str] | None:
    """What is wrong with a partition whatever its table: (reason code, why)."""
    if cell.version.damaged:
        return "damaged", "its data file cannot be read"
    if cell.recorded is None:
        if cell.version == ABSENT:
            return "missing", "never fetched"
        return "unrecorded", f"{cell.version.rows:,} rows that no fetch of ours recorded"
    if cell.version == ABSENT and cell.recorded != ABSENT:
        return "missing", f"its {cell.recorded.rows:,} rows are gone"
    if cell.version != cell.recorded:
        return "changed", f"content is not what was fetched ({cell.version} instead of {cell.recorded})"
    return None


def _judge_day(endpoint: Endpoint, day: date, seen: Observed, now: datetime, rules: Rules) -> Verdict:
    partition = str(day)
    due = due_at(endpoint, day, rules.daily_at)
    if now < due:
        return _verdict(
            endpoint.name, partition, "early", "early", f"due from {due:%Y-%m-%d %H:%M} Asia/Shanghai"
        )
    cell = seen.cell(endpoint.name, partition)
    expected = seen.expected.get((endpoint.name, partition))
    judgement = judge(endpoint, cell.version.rows, expected)
    if (fault := _fault(cell)) is not None:
        code, why = fault
        if judgement.status == "refused":
            code, why = "incomplete", f"{judgement} are left"
        elif code == "missing" and expected:
            why = f"{why}, {expected:,} rows expected"
        return _verdict(endpoint.name, partition, "gap", code, why, cell, rules)
    return _judge_untouched(endpoint, partition, cell, judgement, seen, now, rules)


def _judge_untouched(
    endpoint: Endpoint,
    partition: str,
    cell: Cell,
    judgement: Judgement,
    seen: Observed,
    now: datetime,
    rules: Rules,
) -> Verdict:
    """The lake holds what we fetched; is that enough, and is it time to ask again?"""
    name = endpoint.name
    if judgement.status in ("refused", "empty"):
        # Accepted when it was fetched; the reference has grown since.
        return _verdict(
            name, partition, "gap", "incomplete", str(judgement), cell, rules, str(judgement.expected)
        )
    fetches = int(cell.detail.get("fetches", 1))
    if judgement.status == "partial" and cell.seen_count < 2:
        again = refetch_at(fetches, cell.checked_at or now)
        if now >= again:
            why = f"{judgement}, asked {fetches}×, time to ask again"
            return _verdict(name, partition, "gap", "partial", why, cell, rules, str(fetches))
        return _verdict(
            name, partition, "early", "partial", f"{judgement}, asked again at {shanghai(again):%H:%M}"
        )
    if _recheck_due(partition, cell, seen, now, rules):
        why = f"{judgement}; once more, for revisions"
        return _verdict(name, partition, "recheck", "recheck", why, cell, rules, str(fetches))
    if judgement.status == "partial":
        why = f"{judgement}, the same {cell.seen_count} times: the source says so"
        return _verdict(name, partition, "explained", "source_says_so", why)
    return _verdict(name, partition, "healthy", "", str(judgement))


def _recheck_due(partition: str, cell: Cell, seen: Observed, now: datetime, rules: Rules) -> bool:
    """The newest days are asked for once more at each daily look: sources revise what they published."""
    newest = newest_published(seen.calendar, now, rules.daily_at)
    if newest is None or cell.checked_at is None:
        return False
    recent = {str(d) for d in seen.calendar.newest(rules.recheck_days, newest)}
    return partition in recent and cell.checked_at < at(newest, rules.daily_at)


def _derived(catalogue: Catalogue, day: date, seen: Observed) -> Iterator[Verdict]:
    """What is computed from a day; not while a fill of that day is under way, which ends with it."""
    if day in seen.busy_days:
        return
    partition = str(day)
    for table, inputs in (
        (ADJUSTED_DAILY.table, adjusted_inputs(seen, partition)),
        (COVERAGE.table, coverage_inputs(catalogue, seen, partition)),
    ):
        if inputs is None:
            continue
        cell = seen.cell(table, partition)
        if fault := _fault(cell):
            yield _verdict(table, partition, "derive", *fault, cell, None, digest(inputs))
        elif dict(cell.inputs) != inputs:
            changed = sorted(
                k for k in inputs.keys() | cell.inputs.keys() if inputs.get(k) != cell.inputs.get(k)
            )
            why = f"made from another {', '.join(changed)}"
            yield _verdict(table, partition, "derive", "inputs_changed", why, cell, None, digest(inputs))
        else:
            yield _verdict(table, partition, "healthy", "", f"{cell.version.rows:,} rows, inputs unchanged")
    if day in seen.pending_revisions:
        yield _verdict(REVISIONS.table, partition, "derive", "revised", "the source revised this day")


def _verdict(
    table: str,
    partition: str,
    state: State,
    reason_code: str,
    why: str,
    cell: Cell | None = None,
    rules: Rules | None = None,
    extra: str = "",
) -> Verdict:
    """The fingerprint stands for the reason: what was found, and what a person may have changed since."""
    fingerprint = ""
    if state in PRIORITY:
        found: Sequence[str] = (
            reason_code,
            str(cell.version) if cell else "",
            rules.configuration if rules else "",
            extra,
        )
        fingerprint = digest(found)
    return Verdict(table, partition, state, reason_code, why, fingerprint)

"""The market plan: from the observed state and a moment, what is due and why.

A pure function. Sensor, schedule and command call it and `perennial plan market` prints it, so a day is
a gap for the same reason everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta

from domain.market.catalogue import Catalogue, Endpoint
from domain.market.completeness import EXPLAINED_AFTER, Judgement, judge, refetch_at
from domain.market.derived import (
    ADJUSTED_FROM,
    adjusted_inputs,
    coverage_inputs,
    coverage_sources,
    references,
)
from domain.market.observed import Observed, Rules
from domain.market.tables import ADJUSTED_DAILY, COVERAGE, REVISIONS
from domain.market.tables import DERIVED as DERIVED_TABLES
from domain.market.trading import at, due_at, newest_published, shanghai
from domain.shared.backoff import Backoff
from domain.shared.hashing import digest
from domain.shared.state import PartitionState
from domain.shared.table import ABSENT, ALL
from domain.shared.verdict import (
    INPUT_MISSING,
    Plan,
    Verdict,
    Wrong,
    changed_inputs,
    due,
    fault,
    outdated,
    waiting,
    waits_for,
)
from domain.shared.work import Kind

FILL = "market.fill"
"""A day of a table, fetched or derived."""
REFRESH = "market.refresh"
"""A reference: the calendar of a year, the stock list."""

# No maximum of attempts: inside the gap window a transient failure is never final. No jitter: the tables of a
# day that failed together are tried again together, in one run.
_ACROSS_RUNS = Backoff(base=timedelta(seconds=60), factor=2, cap=timedelta(hours=1))
KINDS = (Kind(FILL, transient=_ACROSS_RUNS), Kind(REFRESH, transient=_ACROSS_RUNS))

REFERENCE, GAP, DERIVED, OLDER, ROUTINE = 30, 20, 10, 5, 0
"""The priorities of work: references first, then the window, older days, the routine check for revisions."""

EARLY = "early"
EXPLAINED = "source_says_so"
"""The reason code of a partial day that is healthy: the source sent it twice."""
REFERENCES_FROM = time(9)
"""References are fetched once a day, from this hour in Shanghai or from their publication if later."""


def take(plan: Plan, limit: int, live: Callable[[str], bool]) -> tuple[Verdict, ...]:
    """Return what one pass enqueues: known work, and at most `limit` further days, newest first.

    `live` says whether the ledger knows the key: a row waiting, running, failed for good, or cancelled by a
    person. What is given up must not count as a further day, or three hopeless days would hide every older
    one; requested again it stays as it is until its fingerprint changes. Gaps come before rechecks.
    """
    wanted = [(v, v.request.priority) for v in plan.verdicts if v.request]
    chosen = [v for v, priority in wanted if priority == REFERENCE or live(v.key)]
    for priorities in ((GAP, DERIVED), (OLDER,), (ROUTINE,)):
        fresh = [v for v, priority in wanted if priority in priorities and not live(v.key)]
        days = sorted({v.partition for v in fresh}, reverse=True)[:limit]
        chosen += [v for v in fresh if v.partition in days]
    return tuple(chosen)


def is_gap(verdict: Verdict) -> bool:
    """Return whether anything is wrong with a day's partition: it is due for more than a routine check."""
    return verdict.request is not None and verdict.request.priority != ROUTINE


def needs_work(verdict: Verdict) -> bool:
    """Return whether a day's partition is a gap, or cannot be judged as something cannot be read."""
    return is_gap(verdict) or verdict.blocked


def plan(catalogue: Catalogue, seen: Observed, now: datetime, rules: Rules) -> Plan:
    """Return the verdicts at `now`: references first, then days, newest first."""
    verdicts = list(_references(catalogue, seen, now, rules))
    for day in reversed(window(seen, now, rules)):
        verdicts += judge_day(catalogue, day, seen, now, rules)
    for day in sorted(seen.older, reverse=True):
        verdicts += _judge_older(catalogue, day, seen, now, rules)
    inside = {v.partition for v in verdicts if v.table == REVISIONS.table}
    verdicts += [
        _revised(catalogue, day, seen)
        for day in sorted(seen.pending_revisions, reverse=True)
        if str(day) not in inside and day not in seen.busy_days
    ]
    return Plan(tuple(verdicts))


def judge_day(catalogue: Catalogue, day: date, seen: Observed, now: datetime, rules: Rules) -> list[Verdict]:
    """Return the verdicts of one open day: its fetched tables, then what derives from them."""
    fetched = [
        _if_counted(catalogue, e, seen, _judge_table(e, day, seen, now, rules, references(catalogue, e)))
        for e in catalogue.daily
    ]
    return [*fetched, *_derived(catalogue, day, seen)]


def _if_counted(catalogue: Catalogue, endpoint: Endpoint, seen: Observed, verdict: Verdict) -> Verdict:
    """Return the verdict; a due day waits while nothing says how many rows it must have."""
    stocks = seen.state(catalogue.stocks.name, ALL).version
    counted = (stocks.readable and stocks.rows) or seen.expected.get((verdict.table, verdict.partition))
    if not verdict.due or endpoint.expected == "unknown" or counted:
        return verdict
    return waiting(verdict, f"waiting for {catalogue.stocks.endpoint}", INPUT_MISSING)


def _judge_older(
    catalogue: Catalogue, day: date, seen: Observed, now: datetime, rules: Rules
) -> list[Verdict]:
    """Return what is wrong with a day before the window; of its derived tables only what no other table of
    the day causes, as the run that fetches it makes them too. What was never fetched is no gap."""
    derived = {table.table for table in DERIVED_TABLES}
    wrong = [
        v
        for v in judge_day(catalogue, day, seen, now, rules)
        if v.table != REVISIONS.table  # of these all days are judged
        and (is_gap(v) or v.state == "unavailable" or v.reason_code == "partial")
        and (rules.heal_history or v.table in derived or not seen.state(v.table, v.partition).never_made)
    ]
    fetched = [v for v in wrong if v.table not in derived]
    # What waits to be fetched again is no cause yet.
    named = fetched if any(v.state != "waiting" for v in fetched) else wrong
    return [replace(v, request=replace(v.request, priority=OLDER)) if v.request else v for v in named]


def window(seen: Observed, now: datetime, rules: Rules) -> tuple[date, ...]:
    """Return the open days that a pass judges, oldest first.

    The last `window_days` days up to today, and never fewer than `limit` open days: a long holiday must not
    hide the days before it. A missing calendar must: beyond it are days of another year.
    """
    today = shanghai(now).date()
    days = set(seen.calendar.between(today - timedelta(days=rules.window_days), today))
    newest = newest_published(seen.calendar, now, rules.daily_at)
    if newest:
        known = seen.calendar.years
        days |= {
            day
            for day in seen.calendar.newest(rules.limit, newest)
            if known.issuperset(range(day.year, today.year + 1))
        }
    return tuple(sorted(day for day in days if day >= rules.first_day))


def years_wanted(now: datetime, rules: Rules) -> tuple[int, ...]:
    """The calendar years to keep: this one and those the window reaches into, in January the one before in
    any case, from December the next."""
    today = shanghai(now).date()
    first = (today - timedelta(days=rules.window_days)).year
    if today.month == 1:
        first = min(first, today.year - 1)
    last = today.year + 1 if today.month == 12 else today.year
    return tuple(range(first, last + 1))


def _references(catalogue: Catalogue, seen: Observed, now: datetime, rules: Rules) -> Iterator[Verdict]:
    wanted = tuple(map(str, years_wanted(now, rules)))
    for year in wanted:
        yield _reference(catalogue.calendar, year, seen, now, rules)
    yield _reference(catalogue.stocks, ALL, seen, now, rules)
    calendar = catalogue.calendar.name
    for table, year in sorted(seen.states, reverse=True):
        # An older year is never fetched again, unless something happened to it.
        if table == calendar and year not in wanted and not seen.state(table, year).untouched:
            yield _reference(catalogue.calendar, year, seen, now, rules)


def _reference(endpoint: Endpoint, partition: str, seen: Observed, now: datetime, rules: Rules) -> Verdict:
    name = endpoint.name
    if waiting := _waiting(name, partition, seen):
        return waiting
    state = seen.state(name, partition)
    found = (str(state.version), str(state.recorded), rules.configuration)
    wrong = fault(state)
    if wrong is None and state.version == ABSENT:
        wrong = "missing", "missing", "it is empty"
    if wrong is not None:
        return _due(name, partition, wrong, REFERENCE, *found)
    hour = at(shanghai(now).date(), max(endpoint.published, REFERENCES_FROM))
    last = hour if now >= hour else hour - timedelta(days=1)
    if state.checked_at is None or state.checked_at < last:
        fetched = f"{shanghai(state.checked_at):%Y-%m-%d %H:%M}" if state.checked_at else "never"
        reason = f"last fetched {fetched}, due since {last:%Y-%m-%d %H:%M}"
        return _due(name, partition, ("stale", "daily_refresh", reason), REFERENCE, *found, str(last))
    return Verdict(name, partition, "healthy", reason=f"{state.version.rows:,} rows")


def _judge_table(
    endpoint: Endpoint, day: date, seen: Observed, now: datetime, rules: Rules, judged_by: Sequence[str]
) -> Verdict:
    """Return the verdict on one fetched table of a day."""
    name, partition = endpoint.name, str(day)
    due_from = due_at(endpoint, day, rules.daily_at)
    if now < due_from:
        return Verdict(name, partition, "waiting", EARLY, f"due from {due_from:%Y-%m-%d %H:%M} Asia/Shanghai")
    # Without the tables it is judged by completeness is unknown, also of an answer of the source.
    if waiting := _waiting(name, partition, seen, judged_by):
        return waiting
    state = seen.state(name, partition)
    found = (str(state.version), str(state.recorded), rules.configuration)
    judgement = judge(endpoint, state.version.rows, seen.expected.get((name, partition)))
    wrong = fault(state)
    if wrong is not None:
        # It was healthy when it was last fetched.
        since = state.checked_at or due_from
        return replace(_due(name, partition, _counted(wrong, judgement), GAP, *found), since=since)
    if judgement.status in ("refused", "empty"):
        # Accepted when it was fetched; the reference has grown since.
        thin: Wrong = "incomplete", "incomplete", str(judgement)
        return _due(name, partition, thin, GAP, *found, str(judgement.expected))
    fetches = int(state.detail.get("fetches", 1))
    if judgement.status == "partial" and state.seen_count < EXPLAINED_AFTER:
        again = refetch_at(fetches, state.checked_at or now)
        if now < again:
            reason = f"{judgement}, fetched again from {shanghai(again):%Y-%m-%d %H:%M}"
            return Verdict(
                name, partition, "waiting", "partial", reason, since=state.committed_at, next_attempt=again
            )
        thin = "incomplete", "partial", f"{judgement}, fetched {fetches}×, due again"
        return _due(name, partition, thin, GAP, *found, str(fetches))
    if _recheck_due(day, state, seen, now, rules):
        again_due: Wrong = "stale", "recheck", f"{judgement}; once more, for revisions"
        return _due(name, partition, again_due, ROUTINE, *found, str(fetches))
    if judgement.status == "partial":
        reason = f"{judgement}, the same {state.seen_count} times: the source says so"
        return Verdict(name, partition, "healthy", EXPLAINED, reason, since=state.committed_at)
    return Verdict(name, partition, "healthy", reason=str(judgement))


def _counted(wrong: Wrong, judgement: Judgement) -> Wrong:
    """Return a fault with the row counts in its reason."""
    state, code, reason = wrong
    if judgement.status == "refused":
        return "incomplete", "incomplete", f"{judgement} are left"
    if code == "missing" and judgement.expected:
        return state, code, f"{reason}, {judgement.expected:,} rows expected"
    return wrong


def _recheck_due(day: date, state: PartitionState, seen: Observed, now: datetime, rules: Rules) -> bool:
    """Whether a day is fetched once more: sources revise their newest days."""
    newest = newest_published(seen.calendar, now, rules.daily_at)
    if newest is None or day not in seen.calendar.newest(rules.recheck_days, newest):
        return False
    return state.checked_at is None or state.checked_at < at(newest, rules.daily_at)


def _derived(catalogue: Catalogue, day: date, seen: Observed) -> Iterator[Verdict]:
    """Yield the verdicts on derived tables, unless a running fill makes them."""
    if day in seen.busy_days:
        return
    partition = str(day)
    for table, inputs, sources in (
        (ADJUSTED_DAILY.table, adjusted_inputs(seen, partition), ADJUSTED_FROM),
        (COVERAGE.table, coverage_inputs(catalogue, seen, partition), coverage_sources(catalogue)),
    ):
        if waiting := _waiting(table, partition, seen, sources):
            yield waiting
        elif inputs is not None:
            yield _judge_derived(table, partition, seen.state(table, partition), inputs)
    if day in seen.pending_revisions:
        yield _revised(catalogue, day, seen)


def _judge_derived(table: str, partition: str, state: PartitionState, inputs: Mapping[str, str]) -> Verdict:
    wrong = fault(state)
    if wrong is None and (changed := changed_inputs(state, inputs)):
        wrong = outdated(changed)
    if wrong is not None:
        return _due(table, partition, wrong, DERIVED, str(state.version), digest(inputs))
    return Verdict(table, partition, "healthy", reason=f"{state.version.rows:,} rows, inputs unchanged")


def _revised(catalogue: Catalogue, day: date, seen: Observed) -> Verdict:
    versions = [str(seen.state(e.name, str(day)).version) for e in catalogue.daily]
    wrong: Wrong = "stale", "revised", "the source revised this day"
    return _due(REVISIONS.table, str(day), wrong, DERIVED, *versions)


def _waiting(table: str, partition: str, seen: Observed, sources: Sequence[str] = ()) -> Verdict | None:
    """Return the verdict on a partition that waits until something can be read."""
    wrong = waits_for([seen.state(table, partition)], {n: seen.source(n, partition) for n in sources})
    return Verdict(table, partition, *wrong) if wrong else None


def _due(table: str, partition: str, wrong: Wrong, priority: int, *found: str) -> Verdict:
    kind = REFRESH if priority == REFERENCE else FILL
    return due(Verdict(table, partition, *wrong), kind, priority, *found)

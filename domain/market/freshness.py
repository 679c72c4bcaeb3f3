"""Freshness of a source, counted in the time in which it was due to publish."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from domain.market.trading import TradingCalendar, at, shanghai
from domain.shared.freshness import SourceState, source_state
from domain.shared.health import SourceFreshness

STALE_FROM = timedelta(hours=48)
SILENT_BEYOND = timedelta(days=7)


def freshness(source: SourceFreshness, calendar: TradingCalendar, now: datetime) -> SourceState:
    age = due_age(calendar, source.last_success, now) if source.last_success else None
    return source_state(source, age, STALE_FROM, SILENT_BEYOND, unit="trading hours")


def due_age(calendar: TradingCalendar, since: datetime, now: datetime) -> timedelta:
    """Time from `since` to `now` that fell on open days. A weekend or a holiday makes nothing old.

    Weekdays count as open where the calendar has no data.
    """
    if since >= now:
        return timedelta(0)
    first, last = shanghai(since).date(), shanghai(now).date()
    age = timedelta(0)
    day = first
    while day <= last:
        if _counts(calendar, day):
            start, end = at(day, _MIDNIGHT), at(day + timedelta(days=1), _MIDNIGHT)
            age += min(now, end) - max(since, start)
        if age > SILENT_BEYOND:
            break
        day += timedelta(days=1)
    return age


_MIDNIGHT = datetime.min.time()


def _counts(calendar: TradingCalendar, day: date) -> bool:
    return calendar.is_open(day) if calendar.knows(day) else day.weekday() < 5

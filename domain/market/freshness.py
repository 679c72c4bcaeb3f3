"""How fresh a source is, judged on the time in which it was due to publish."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal, Protocol

from domain.market.trading import TradingCalendar, at, shanghai

STALE_FROM = timedelta(hours=48)
SILENT_BEYOND = timedelta(days=7)

FreshnessStatus = Literal["never_ingested", "error", "healthy", "stale"]


class Told(Protocol):
    """What a source's freshness is judged by; the ledger keeps it."""

    @property
    def source(self) -> str: ...
    @property
    def last_success(self) -> datetime | None: ...
    @property
    def last_failure(self) -> datetime | None: ...
    @property
    def last_error(self) -> str | None: ...


@dataclass(frozen=True)
class Freshness:
    status: FreshnessStatus
    reason: str


def freshness(source: Told, calendar: TradingCalendar, now: datetime) -> Freshness:
    success, failure = source.last_success, source.last_failure
    if success is None and failure is None:
        return Freshness("never_ingested", "never_ingested")
    if success is None or (failure is not None and failure > success):
        return Freshness("error", source.last_error or "the last attempt failed")
    age = due_age(calendar, success, now)
    if age > SILENT_BEYOND:
        return Freshness("error", "silent")
    if age >= STALE_FROM:
        return Freshness("stale", f"nothing new for {age.total_seconds() / 3600:.0f} trading hours")
    return Freshness("healthy", "")


def due_age(calendar: TradingCalendar, since: datetime, now: datetime) -> timedelta:
    """Time from `since` to `now` that fell on open days. A weekend or a holiday makes nothing old.

    Where the calendar says nothing, weekdays count as open.
    """
    if since >= now:
        return timedelta(0)
    first, last = shanghai(since).date(), shanghai(now).date()
    age = timedelta(0)
    day = first
    while day <= last:
        if _counts(calendar, day):
            begins, ends = at(day, _MIDNIGHT), at(day + timedelta(days=1), _MIDNIGHT)
            age += min(now, ends) - max(since, begins)
        if age > SILENT_BEYOND:
            break
        day += timedelta(days=1)
    return age


_MIDNIGHT = datetime.min.time()


def _counts(calendar: TradingCalendar, day: date) -> bool:
    return calendar.is_open(day) if calendar.knows(day) else day.weekday() < 5

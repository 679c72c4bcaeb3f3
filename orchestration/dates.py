"""Days and moments that people type: one way to read them, one way to say what is wrong with them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from domain.shared.clock import machine_clock
from domain.shared.error import InvalidInput

EXAMPLE = date(2026, 11, 17)


def parse_day(text: str) -> date:
    """A day, written as 2026-11-17 or 20261117."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(f"{text!r} is no day", remedy=f"write it like {EXAMPLE}") from None


def parse_moment(text: str) -> datetime:
    """A moment; without a zone UTC, without an hour the beginning of the day."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{text!r} is no moment",
            remedy=f"write it like {EXAMPLE}, {EXAMPLE}T14:30 or {EXAMPLE}T14:30+08:00",
        ) from None


def parse_past(text: str | None) -> datetime | None:
    """A moment that has passed: without a zone UTC, without an hour the end of that day, or None (now) of
    today."""
    if text is None:
        return None
    try:
        begins = datetime.fromisoformat(text)
        begins = (begins if begins.tzinfo else begins.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text!r} is no moment", remedy="2026-11-18 or 2026-11-18T14:30+01:00") from None
    now = machine_clock()
    if begins > now:
        raise InvalidInput(f"{text} is yet to come", remedy="name a moment that has passed")
    if len(text) > len("2026-11-18"):
        return begins
    ends = begins + timedelta(days=1)
    return ends if ends <= now else None


DAY = {"parser": parse_day, "metavar": "DAY"}
"""Of an option that is a day: `typer.Option("--from", **DAY)`."""
MOMENT = {"parser": parse_moment, "metavar": "MOMENT"}

"""Days and moments that people type: one way to read them, one way to say what is wrong with them."""

from __future__ import annotations

from datetime import UTC, date, datetime

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


DAY = {"parser": parse_day, "metavar": "DAY"}
"""Of an option that is a day: `typer.Option("--from", **DAY)`."""
MOMENT = {"parser": parse_moment, "metavar": "MOMENT"}

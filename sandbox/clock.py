"""The sandbox's business clock: the one it was given, until somebody stops it at a moment."""

from __future__ import annotations

from datetime import UTC, datetime

from domain.shared.clock import Clock, stopped_at
from domain.shared.error import InvalidInput
from sandbox.endpoints import SHANGHAI


class MovableClock:
    def __init__(self, clock: Clock) -> None:
        self._given = clock
        self._clock = clock

    def __call__(self) -> datetime:
        return self._clock().astimezone(UTC)

    def stop_at(self, moment: datetime) -> None:
        self._clock = stopped_at(moment)

    def run(self) -> None:
        """Back to the clock that was given."""
        self._clock = self._given


def parse_moment(text: str) -> datetime:
    """An ISO date or time; without a zone it is Shanghai's."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"{text!r} is not an ISO time", remedy="write it like 2026-11-17T18:30+08:00 or 2026-11-17T18:30"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=SHANGHAI)

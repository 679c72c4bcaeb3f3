"""Is a day of a table whole? One judgement, used before a commit and at every look after it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from domain.market.catalogue import Endpoint

REFUSED_BELOW = 0.90
COMPLETE_FROM = 0.99
REFETCH_AFTER = (timedelta(hours=1), timedelta(hours=6), timedelta(hours=24))
SAYS_SO = 2
"""How many times in a row the same partial day must come before it is explained."""

Status = Literal["complete", "asked", "partial", "refused", "empty", "unjudged"]
"""complete   whole, or nothing tells otherwise
asked      empty, and an empty answer is an answer
partial    0.90 to 0.99 of what is expected: kept, and fetched again
refused    less: never data
empty      nothing where there must be something
unjudged   the reference (stock list) is not there yet
"""


@dataclass(frozen=True)
class Judgement:
    status: Status
    rows: int
    expected: int | None
    ratio: float | None

    def __str__(self) -> str:
        if self.expected is None or self.ratio is None:
            return f"{self.rows:,} rows"
        return f"{self.rows:,} of {self.expected:,} rows ({self.ratio:.1%})"


def judge(endpoint: Endpoint, rows: int, expected: int | None) -> Judgement:
    """Judge a day of `endpoint` with `rows` rows, of which `expected` should be there."""
    if rows == 0 and endpoint.may_be_empty:
        return Judgement("asked", 0, expected, None)
    if rows == 0 and expected != 0:
        return Judgement("empty", 0, expected, 0.0 if expected else None)
    if endpoint.expected == "unknown":
        return _by_floor(endpoint, rows)
    if expected is None:
        return Judgement("unjudged", rows, None, None)
    ratio = rows / expected if expected else 1.0
    if ratio < REFUSED_BELOW:
        return Judgement("refused", rows, expected, ratio)
    return Judgement("complete" if ratio >= COMPLETE_FROM else "partial", rows, expected, ratio)


def _by_floor(endpoint: Endpoint, rows: int) -> Judgement:
    if endpoint.floor and rows < endpoint.floor:
        return Judgement("refused", rows, endpoint.floor, rows / endpoint.floor)
    return Judgement("complete", rows, None, None)


def refetch_at(fetches: int, checked_at: datetime) -> datetime:
    """When a partial day is asked for again, after `fetches` fetches, the last at `checked_at`."""
    return checked_at + REFETCH_AFTER[min(max(fetches, 1), len(REFETCH_AFTER)) - 1]

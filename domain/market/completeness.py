"""Completeness of a day: one judgement, used before a commit and in every later plan."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from domain.market.catalogue import Endpoint
from domain.shared.state import PartitionState

REFUSED_BELOW = 0.90
COMPLETE_FROM = 0.99
REFETCH_AFTER = (timedelta(hours=1), timedelta(hours=6), timedelta(hours=24))
EMPTY_ANSWER = "empty_answer"
"""Reason code of an empty answer that may still be filled: no failure of the source."""
NOT_ANNOUNCED = "not_announced"
STOCK_LIST_MISSING = "stock_list_missing"
"""Reason code of a day that waits until its rows can be counted: nothing was asked."""
EXPLAINED_AFTER = 2
"""How often the same partial day must be fetched before it counts as explained."""

THINNER = "thinner"
"""Reason code of an answer that a day is not replaced by."""

Status = Literal["complete", "asked", "partial", "refused", "empty", "unjudged"]
"""complete   at least 99 % of the expected rows, or nothing to compare with
asked      empty, which this table may be
partial    0.90 to 0.99 of the expected rows: stored, and fetched again
refused    fewer rows: never stored
empty      no rows where there must be some
unjudged   the stock list is missing
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
    """Return the judgement of a day with `rows` rows of `expected`."""
    if rows == 0 and endpoint.may_be_empty:
        return Judgement("asked", 0, expected, None)
    if rows == 0 and expected != 0:
        return Judgement("empty", 0, expected, 0.0 if expected else None)
    if endpoint.expected == "unknown":
        if endpoint.floor and rows < endpoint.floor:
            return Judgement("refused", rows, endpoint.floor, rows / endpoint.floor)
        return Judgement("complete", rows, None, None)
    if expected is None:
        return Judgement("unjudged", rows, None, None)
    ratio = rows / expected if expected else 1.0
    if ratio < REFUSED_BELOW:
        return Judgement("refused", rows, expected, ratio)
    return Judgement("complete" if ratio >= COMPLETE_FROM else "partial", rows, expected, ratio)


def is_thinner(rows: int, held: PartitionState) -> bool:
    """Return whether an answer has fewer rows than a day that is as it was recorded."""
    return held.untouched and rows < held.version.rows


def is_settled(held: PartitionState) -> bool:
    """Return whether a day is whole, or as partial as the source says it is."""
    return held.detail.get("status") != "partial" or held.seen_count >= EXPLAINED_AFTER


def refetch_at(fetches: int, checked_at: datetime) -> datetime:
    """Return when a partial day is fetched again, after `fetches` fetches, the last at `checked_at`."""
    return checked_at + REFETCH_AFTER[min(max(fetches, 1), len(REFETCH_AFTER)) - 1]

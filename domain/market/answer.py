"""Checks of what the source answered: only a checked answer may be committed."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from domain.market.catalogue import Endpoint
from domain.market.completeness import (
    EMPTY_ANSWER,
    NOT_ANNOUNCED,
    STOCK_LIST_MISSING,
    THINNER,
    Judgement,
    is_thinner,
    judge,
)
from domain.market.trading import calendar_owed, published_at, shanghai
from domain.shared.error import InvalidInput, TransientResourceError
from domain.shared.state import PartitionState

OVERDUE_AFTER = timedelta(hours=3)
"""How long after publication an empty answer is only early."""


class NotYetData(TransientResourceError):
    """The source answered, and the answer is no data."""


class TooEarly(NotYetData):
    """No seconds help: it is not published yet, or there is nothing to judge it by."""

    retry_in_run = False


class ThinnerAnswer(InvalidInput):
    """A whole day was asked for again, and the source now has fewer rows of it."""

    reason_code = THINNER


def refuse_thinner(endpoint: Endpoint, day: date, rows: int, held: PartitionState) -> None:
    """Raise if the answer would replace a fuller day."""
    if is_thinner(rows, held):
        raise ThinnerAnswer(
            f"{endpoint.endpoint} {day}: the source has {rows:,} rows now; "
            f"the day keeps its {held.version.rows:,}",
            remedy=f"to take them all the same: `perennial market backfill --from {day} --to {day} --force "
            "--accept-thinner`, or materialize the day with the tag perennial/accept=thinner",
        )


def check_answer(
    endpoint: Endpoint, day: date, frame: pa.Table, expected: int | None, now: datetime
) -> Judgement:
    """Return the judgement of an answer; raise if it is not data."""
    where = f"{endpoint.endpoint} {day}"
    _check_rows(endpoint, day, frame, where)
    judgement = judge(endpoint, frame.num_rows, expected)
    if judgement.status == "empty":
        overdue = now > published_at(endpoint, day) + OVERDUE_AFTER
        due = f"{shanghai(published_at(endpoint, day)):%H:%M}"
        words = f"{where}: empty answer for an open day"
        if not overdue:
            raise TooEarly(words, reason_code=EMPTY_ANSWER)
        raise NotYetData(f"{words}, though it was due at {due} Asia/Shanghai", reason_code="empty_overdue")
    if judgement.status == "refused":
        raise NotYetData(f"{where}: only {judgement}; too few, not kept", reason_code="incomplete")
    if judgement.status == "unjudged":
        raise stock_list_missing(where)
    return judgement


def stock_list_missing(where: str) -> TooEarly:
    """Return the error of a day that waits: how many rows it must have is unknown."""
    return TooEarly(
        f"{where}: waiting for stock_basic, which says how many rows there must be",
        reason_code=STOCK_LIST_MISSING,
        remedy="materialise normalized_stock_basic",
    )


def check_calendar(endpoint: Endpoint, exchange: str, year: int, frame: pa.Table, now: datetime) -> None:
    """Raise unless the year has every day from January, or from the exchange's opening, to December."""
    where = f"{endpoint.endpoint} {exchange} {year}"
    check_distinct(endpoint, frame, where)
    first, owed = calendar_owed(exchange, year)
    day = frame["cal_date"]
    if other_years := frame.num_rows - _count(pc.equal(pc.year(day), year)):
        raise NotYetData(f"{where}: {other_years} days of other years", reason_code="bad_answer")
    days = _count(pc.greater_equal(day, pa.scalar(first)))
    if days != owed:
        words = f"{where}: {days} of {owed} days"
        if year > shanghai(now).year:
            raise TooEarly(f"{words}, not announced yet", reason_code=NOT_ANNOUNCED)
        raise NotYetData(words, reason_code="incomplete")


def _count(condition: pa.ChunkedArray) -> int:
    return int(pc.sum(condition).as_py() or 0)


def _check_rows(endpoint: Endpoint, day: date, frame: pa.Table, where: str) -> None:
    """Raise if rows are of another day or come twice."""
    elsewhere = pc.not_equal(frame["trade_date"], pa.scalar(day, pa.date32()))
    other_days = frame.filter(pc.fill_null(elsewhere, True))  # no date is another date
    if other_days.num_rows:
        raise NotYetData(
            f"{where}: {other_days.num_rows} rows of another day (first: {other_days['trade_date'][0]})",
            reason_code="bad_answer",
        )
    check_distinct(endpoint, frame, where)


def check_distinct(endpoint: Endpoint, frame: pa.Table, where: str) -> None:
    """Raise if a row comes twice. That is an error of the source: the call is retried."""
    keys = frame.select(list(endpoint.table.key))
    if doubled := frame.num_rows - keys.group_by(keys.column_names).aggregate([]).num_rows:
        raise NotYetData(
            f"{where}: {doubled} rows come twice",
            reason_code="bad_answer",
        )

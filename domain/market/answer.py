"""What the source answered for a day: is it data? Only a checked answer may reach the lake."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from domain.market.catalogue import Endpoint
from domain.market.completeness import Judgement, judge
from domain.market.trading import calendar_owed, published_at, shanghai
from domain.shared.distinct import are_distinct
from domain.shared.error import TransientResourceError

PATIENCE = timedelta(hours=3)
"""How long after publication an empty answer is merely early."""
EARLY = "empty_answer"
"""Nothing yet, and it may still come: no failure of the source."""
NOT_ANNOUNCED = "not_announced"


class NotYetData(TransientResourceError):
    """The source answered, but not with a whole day. Seconds will not help; the ledger asks again later."""

    retry_in_run = False


def check_answer(
    endpoint: Endpoint, day: date, frame: pa.Table, expected: int | None, now: datetime
) -> Judgement:
    """Judge an answer; raise where it is not data."""
    where = f"{endpoint.endpoint} {day}"
    _check_rows(endpoint, day, frame, where)
    judgement = judge(endpoint, frame.num_rows, expected)
    if judgement.status == "empty":
        overdue = now > published_at(endpoint, day) + PATIENCE
        due = f"{shanghai(published_at(endpoint, day)):%H:%M}"
        raise NotYetData(
            f"{where}: empty answer for an open day"
            + (f", though it was due at {due} Asia/Shanghai" if overdue else ""),
            reason_code="empty_overdue" if overdue else EARLY,
        )
    if judgement.status == "refused":
        raise NotYetData(f"{where}: only {judgement}; too few, not kept", reason_code="incomplete")
    if judgement.status == "unjudged":
        raise NotYetData(
            f"{where}: nothing tells how many rows there should be before the stock list is there",
            reason_code="stock_list_missing",
            remedy="materialise normalized_stock_basic",
        )
    return judgement


def check_calendar(endpoint: Endpoint, exchange: str, year: int, frame: pa.Table, now: datetime) -> None:
    """A year of an exchange is data once it has every day from January, or from the opening, to December."""
    where = f"{endpoint.endpoint} {exchange} {year}"
    check_distinct(endpoint, frame, where)
    first, owed = calendar_owed(exchange, year)
    day = frame["cal_date"]
    if strays := frame.num_rows - _count(pc.equal(pc.year(day), year)):
        raise NotYetData(f"{where}: {strays} days of other years", reason_code="bad_answer")
    held = _count(pc.greater_equal(day, pa.scalar(first)))
    if held != owed:
        ahead = year > shanghai(now).year
        raise NotYetData(
            f"{where}: {held} of {owed} days" + (", not announced yet" if ahead else ""),
            reason_code=NOT_ANNOUNCED if ahead else "incomplete",
        )


def _count(condition: pa.ChunkedArray) -> int:
    return int(pc.sum(condition).as_py() or 0)


def _check_rows(endpoint: Endpoint, day: date, frame: pa.Table, where: str) -> None:
    """Rows of another day, or the same row twice: the answer is broken, whatever its size."""
    elsewhere = pc.not_equal(frame["trade_date"], pa.scalar(day, pa.date32()))
    strays = frame.filter(pc.fill_null(elsewhere, True))  # no date is another date
    if strays.num_rows:
        raise NotYetData(
            f"{where}: {strays.num_rows} rows of another day, the first of {strays['trade_date'][0]}",
            reason_code="bad_answer",
        )
    check_distinct(endpoint, frame, where)


def check_distinct(endpoint: Endpoint, frame: pa.Table, where: str) -> None:
    """The same row twice is the source's slip, not a person's mistake: asked again, it is right."""
    keys = frame.select(list(endpoint.table.key))
    if not are_distinct(keys):
        doubled = frame.num_rows - keys.group_by(keys.column_names).aggregate([]).num_rows
        raise NotYetData(
            f"{where}: {doubled} rows come twice",
            reason_code="bad_answer",
        )

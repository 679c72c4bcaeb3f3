"""Only a whole answer is data: what an answer must be before it may reach the lake."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest

from domain.market.answer import OVERDUE_AFTER, NotYetData, check_answer, check_calendar
from domain.market.catalogue import Endpoint
from domain.shared.error import TransientResourceError
from tests.unit.domain.market.world import CATALOGUE, TUESDAY, shanghai_time

FACTORS = CATALOGUE.by_name("normalized_adj_factor")
PRICES = CATALOGUE.by_name("normalized_daily")
SUSPENSIONS = CATALOGUE.by_name("suspensions")
EVENING = shanghai_time("2026-11-17 18:31")


def factors(count: int, day: date | None = TUESDAY) -> pa.Table:
    schema = pa.schema([(f.name, f.type) for f in FACTORS.table.schema])
    rows = [{"trade_date": day, "ts_code": f"{n:06}.SZ", "adj_factor": 1.0} for n in range(count)]
    return pa.Table.from_pylist(rows, schema=schema)


def refused(
    frame: pa.Table, expected: int | None = 100, endpoint: Endpoint = FACTORS, now: datetime = EVENING
) -> NotYetData:
    with pytest.raises(NotYetData) as caught:
        check_answer(endpoint, TUESDAY, frame, expected, now)
    return caught.value


@pytest.mark.parametrize(
    ("count", "status"), [(90, "partial"), (98, "partial"), (99, "complete"), (100, "complete")]
)
def test_check_answer__nine_tenths__are_data(count: int, status: str) -> None:
    judgement = check_answer(FACTORS, TUESDAY, factors(count), 100, EVENING)
    assert (judgement.status, judgement.rows, judgement.expected) == (status, count, 100)


def test_check_answer__no_data__is_asked_again_in_this_run_unless_it_is_early() -> None:
    for error in (refused(factors(0)), refused(factors(10)), refused(factors(100, date(2026, 11, 16)))):
        assert isinstance(error, TransientResourceError)
        assert error.retry_in_run
    early = refused(factors(0), endpoint=PRICES, now=shanghai_time("2026-11-17 16:01"))
    assert not early.retry_in_run
    assert not refused(factors(10), expected=None).retry_in_run


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (timedelta(0), "empty_answer"),
        (OVERDUE_AFTER, "empty_answer"),
        (OVERDUE_AFTER + timedelta(microseconds=1), "empty_overdue"),
    ],
)
def test_check_answer__empty__is_early_for_three_hours_and_then_overdue(
    after: timedelta, reason: str
) -> None:
    published = shanghai_time("2026-11-17 16:00")
    empty = pa.Table.from_pylist([], schema=PRICES.table.schema)
    assert refused(empty, endpoint=PRICES, now=published + after).reason_code == reason


def test_check_answer__may_be_empty__is_asked() -> None:
    empty = pa.Table.from_pylist([], schema=SUSPENSIONS.table.schema)
    assert check_answer(SUSPENSIONS, TUESDAY, empty, None, EVENING).status == "asked"


def test_check_answer__no_stock_listed__is_complete_without_rows() -> None:
    assert check_answer(FACTORS, TUESDAY, factors(0), 0, EVENING).status == "complete"


def test_check_answer__no_stock_list__names_the_remedy() -> None:
    error = refused(factors(100), expected=None)
    assert (error.reason_code, error.remedy) == ("stock_list_missing", "materialise normalized_stock_basic")


def test_check_answer__below_the_floor__is_refused() -> None:
    endpoint = replace(FACTORS, expected="unknown", floor=4_000)
    assert refused(factors(3_999), expected=None, endpoint=endpoint).reason_code == "incomplete"
    assert check_answer(endpoint, TUESDAY, factors(4_000), None, EVENING).status == "complete"


@pytest.mark.parametrize("day", [date(2026, 11, 16), None])
def test_check_answer__row_of_another_day__is_a_bad_answer(day: date | None) -> None:
    error = refused(pa.concat_tables([factors(100), factors(1, day)]))
    assert error.reason_code == "bad_answer"
    assert str(day) in error.message


def test_check_answer__row_twice__is_a_bad_answer() -> None:
    error = refused(pa.concat_tables([factors(100), factors(3)]))
    assert (error.reason_code, error.message) == ("bad_answer", "adj_factor 2026-11-17: 3 rows come twice")


def suspended(*timings: str | None) -> pa.Table:
    rows = [
        {"trade_date": TUESDAY, "ts_code": "600000.SH", "suspend_timing": t, "suspend_type": "S"}
        for t in timings
    ]
    return pa.Table.from_pylist(rows, schema=SUSPENSIONS.table.schema)


def test_check_answer__null_key_twice__is_a_bad_answer() -> None:
    error = refused(suspended(None, None), expected=None, endpoint=SUSPENSIONS)
    assert error.reason_code == "bad_answer"


CALENDAR = CATALOGUE.calendar


def days(first: str, last: str, *, exchange: str = "BSE") -> pa.Table:
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    every = [start + timedelta(days=n) for n in range((end - start).days + 1)]
    names = pa.array([exchange] * len(every))
    return pa.table({"exchange": names, "cal_date": pa.array(every, pa.date32())})


def calendar_refused(frame: pa.Table, exchange: str, year: int) -> NotYetData:
    with pytest.raises(NotYetData) as caught:
        check_calendar(CALENDAR, exchange, year, frame, EVENING)
    return caught.value


@pytest.mark.parametrize(
    ("exchange", "year", "first"),
    [
        ("BSE", 2020, None),
        ("BSE", 2021, "2021-11-15"),
        ("SZSE", 1991, "1991-07-03"),
        ("SSE", 2024, "2024-01-01"),
    ],
)
def test_check_calendar__from_the_opening_of_the_exchange__is_complete(
    exchange: str, year: int, first: str | None
) -> None:
    frame = days(first, f"{year}-12-31") if first else days("2020-01-01", "2020-01-01").slice(1)
    check_calendar(CALENDAR, exchange, year, frame, EVENING)


@pytest.mark.parametrize(
    ("exchange", "year", "first", "last", "said"),
    [
        ("BSE", 2021, "2021-11-16", "2021-12-31", "46 of 47 days"),
        ("SSE", 2024, "2024-01-01", "2024-12-30", "365 of 366 days"),
        ("SSE", 2027, "2027-01-01", "2027-01-31", "31 of 365 days, not announced yet"),
    ],
)
def test_check_calendar__days_missing__is_refused(
    exchange: str, year: int, first: str, last: str, said: str
) -> None:
    error = calendar_refused(days(first, last), exchange, year)
    assert error.message == f"trade_cal {exchange} {year}: {said}"
    assert error.reason_code == ("not_announced" if year == 2027 else "incomplete")


def test_check_calendar__other_years_or_a_day_twice__is_refused() -> None:
    error = calendar_refused(days("2021-12-31", "2022-12-31"), "BSE", 2022)
    assert (error.message, error.reason_code) == ("trade_cal BSE 2022: 1 days of other years", "bad_answer")
    twice = pa.concat_tables([days("2022-01-01", "2022-12-30"), days("2022-01-01", "2022-01-01")])
    assert calendar_refused(twice, "BSE", 2022).reason_code == "bad_answer"

"""How many rows a day should have: against plain counting."""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings

from domain.market.reckoning import expected_rows
from tests.unit.domain.market.frames import FIRST, STOCKS, SUSPENSIONS, Exchange, arrow, exchanges


def one_stock(listed: date | None, delisted: date | None) -> pa.Table:
    return arrow([{"ts_code": "600000.SH", "list_date": listed, "delist_date": delisted}], STOCKS)


def suspended(timing: str | None, kind: str, times: int = 1) -> pa.Table:
    row = {"trade_date": FIRST, "ts_code": "600000.SH", "suspend_timing": timing, "suspend_type": kind}
    return arrow([row] * times, SUSPENSIONS)


NOBODY = suspended(None, "S", times=0)
DAY = timedelta(days=1)


@given(exchanges())
@settings(max_examples=12, deadline=None)
def test_expected_rows__any_exchange__are_those_counted_one_by_one(exchange: Exchange) -> None:
    assert expected_rows(exchange.days, exchange.stock_table, exchange.suspension_table) == {
        day: {"listed": len(exchange.listed(day)), "listed_less_suspended": len(exchange.traded(day))}
        for day in exchange.days
    }


@pytest.mark.parametrize(
    ("listed", "delisted", "count"),
    [
        (FIRST, None, 1),  # from its very first day
        (FIRST + DAY, None, 0),
        (FIRST - DAY, FIRST + DAY, 1),
        (FIRST - DAY, FIRST, 0),  # not on the day from which it no longer trades
        (FIRST, FIRST, 0),
        (None, None, 0),  # approved, not yet listed
    ],
)
def test_expected_rows__stock__counts_from_listing_to_the_day_before_delisting(
    listed: date | None, delisted: date | None, count: int
) -> None:
    assert expected_rows([FIRST], one_stock(listed, delisted), NOBODY)[FIRST]["listed"] == count

"""The market is a market: who is listed, what prices may do, what adds up to what."""

from __future__ import annotations

import hashlib
from datetime import date

import numpy as np
import pytest

from sandbox.endpoints import ENDPOINTS
from sandbox.exchange import Exchange
from sandbox.market.market import Market
from tests.oracles.exchange import listed_codes, suspended_codes, true_rows

DAY = date(2026, 11, 17)
LONG_LIVED = (0, 331, 662, 1324, 1986, 2317, 2648, 2979, 3641, 4303, 4634, 5296, 5627, 6100, 6500)
"""Positions of stocks of every board that have been listed for a while."""

SAMPLE_DAYS = [
    date(1990, 12, 19),
    date(1999, 6, 30),
    date(2015, 6, 30),
    date(2021, 11, 15),
    DAY,
    date(2030, 6, 5),
]


def history(market: Market, stock: int) -> tuple[np.ndarray, np.ndarray]:
    """The stock and all the days on which it was listed and traded up to 2026."""
    first = int(market.universe.listed_at[stock])
    end = min(int(market.universe.delisted_at[stock]), market.calendar.position(date(2026, 11, 18)))
    day = np.arange(first, end)
    cells = market.cells("daily", np.full(len(day), stock), day)
    return cells.stock, cells.day


# Who is there -----------------------------------------------------------------------------------


def test_about_5400_stocks_are_listed_today_on_every_board(exchange: Exchange) -> None:
    codes = listed_codes(exchange, DAY)
    assert 5300 <= len(codes) <= 5500
    assert {code[-2:] for code in codes} == {"SH", "SZ", "BJ"}
    assert sum(code.startswith("688") for code in codes) > 400
    assert sum(code.startswith(("300", "301")) for code in codes) > 1200


def test_the_stock_list_and_the_daily_tables_agree_on_who_is_listed(exchange: Exchange) -> None:
    stocks = true_rows(exchange, "stock_basic", DAY).to_pylist()
    for day in (date(2010, 3, 1), date(2024, 1, 5), DAY):
        expected = {
            row["ts_code"]
            for row in stocks
            if row["list_date"]
            and row["list_date"] <= day
            and (row["delist_date"] is None or day < row["delist_date"])
        }
        assert set(listed_codes(exchange, day)) == expected
        assert set(true_rows(exchange, "adj_factor", day)["ts_code"].to_pylist()) == expected
        traded = set(true_rows(exchange, "daily", day)["ts_code"].to_pylist())
        assert traded == expected - set(suspended_codes(exchange, day))


def test_the_stock_list_of_a_day_knows_nothing_of_later_days(exchange: Exchange) -> None:
    then = true_rows(exchange, "stock_basic", date(2020, 6, 30)).to_pylist()
    assert all(row["list_date"] is None or row["list_date"] <= date(2020, 6, 30) for row in then)
    assert all(row["delist_date"] is None or row["delist_date"] <= date(2020, 6, 30) for row in then)
    assert {row["list_status"] for row in then} <= {"L", "D", "G"}
    assert all((row["list_status"] == "D") == (row["delist_date"] is not None) for row in then)
    assert all((row["list_status"] == "G") == (row["list_date"] is None) for row in then)


# The same for everybody ---------------------------------------------------------------------------


def test_the_same_bytes_on_every_machine(exchange: Exchange) -> None:
    """If this fails after a deliberate change of the market, write down the new digest."""
    digest = hashlib.sha256()
    for table in ENDPOINTS:
        for day in SAMPLE_DAYS:
            digest.update(repr(true_rows(exchange, table, day).to_pylist()).encode())
    assert digest.hexdigest()[:16] == DIGEST


DIGEST = "28737b149c0e833b"


@pytest.mark.parametrize("table", ["daily", "adj_factor", "daily_basic", "suspend_d", "moneyflow"])
def test_a_row_is_the_same_however_it_is_reached(market: Market, table: str) -> None:
    n = market.calendar.position(DAY)
    whole = market.whole_day(table, n)
    all_at_once = market.columns(table, whole)
    for at in (0, len(whole) // 2, len(whole) - 1):
        alone = market.columns(table, whole.take(slice(at, at + 1)))
        for name, values in all_at_once.items():
            assert str(values[at]) == str(alone[name][0])


# Prices ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stock", LONG_LIVED)
def test_a_whole_history_is_ex_right_and_stays_in_range(market: Market, stock: int) -> None:
    stocks, days = history(market, stock)
    columns = market.columns("daily", market.cells("daily", stocks, days))
    factor = market.prices.factor(stocks, days)
    close, pre_close = columns["close"], columns["pre_close"]
    expected = np.rint(np.rint(close[:-1] * 100) * (factor[:-1] / factor[1:])) / 100
    assert np.array_equal(pre_close[1:], expected)
    # Adjusted prices never jump, across ex-dates and long suspensions alike.
    adjusted = close * factor
    assert len(days) > 100
    moves = np.abs(adjusted[1:] / adjusted[:-1] - 1)
    assert moves.max() < 0.1
    assert moves.mean() > 0.003
    assert close.min() > 1.0
    assert close.max() < 2000


# Suspensions -----------------------------------------------------------------------------------------


def test_stocks_halted_for_hours_and_stocks_that_resume_have_prices(exchange: Exchange) -> None:
    seen = set()
    for day in exchange.open_days(date(2026, 10, 1), DAY):
        traded = set(true_rows(exchange, "daily", day)["ts_code"].to_pylist())
        for row in true_rows(exchange, "suspend_d", day).to_pylist():
            whole_day = row["suspend_type"] == "S" and row["suspend_timing"] is None
            assert (row["ts_code"] in traded) != whole_day
            seen.add((row["suspend_type"], row["suspend_timing"] is None))
    assert seen == {("S", True), ("S", False), ("R", True)}

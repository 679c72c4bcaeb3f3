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
LONG_LIVED = (0, 3641, 6500)
"""Positions of stocks of several boards that have been listed for a while."""

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


def test_listed__today__are_about_5400_stocks_of_every_board(exchange: Exchange) -> None:
    codes = listed_codes(exchange, DAY)
    assert 5300 <= len(codes) <= 5500
    assert {code[-2:] for code in codes} == {"SH", "SZ", "BJ"}
    assert sum(code.startswith("688") for code in codes) > 400
    assert sum(code.startswith(("300", "301")) for code in codes) > 1200


def test_stock_list__and_daily_tables__agree_on_the_listed(exchange: Exchange) -> None:
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


# The same for everybody ---------------------------------------------------------------------------


def test_market__any_machine__has_the_same_rows(exchange: Exchange) -> None:
    """If this fails after a deliberate change of the market, write down the new digest."""
    digest = hashlib.sha256()
    for table in ENDPOINTS:
        for day in SAMPLE_DAYS:
            digest.update(repr(true_rows(exchange, table, day).to_pylist()).encode())
    assert digest.hexdigest()[:16] == DIGEST


DIGEST = "28737b149c0e833b"


@pytest.mark.parametrize("table", ["daily", "adj_factor", "daily_basic", "suspend_d", "moneyflow"])
def test_columns__one_row_alone__equals_the_row_of_the_day(market: Market, table: str) -> None:
    n = market.calendar.position(DAY)
    whole = market.whole_day(table, n)
    all_at_once = market.columns(table, whole)
    for at in (0, len(whole) // 2, len(whole) - 1):
        alone = market.columns(table, whole.take(slice(at, at + 1)))
        for name, values in all_at_once.items():
            assert str(values[at]) == str(alone[name][0])


# Prices ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stock", LONG_LIVED)
def test_prices__whole_history__are_ex_right_and_in_range(market: Market, stock: int) -> None:
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


def test_prices__halted_for_hours_or_resumed__exist(exchange: Exchange) -> None:
    seen = set()
    for day in exchange.open_days(date(2026, 10, 1), DAY):
        traded = set(true_rows(exchange, "daily", day)["ts_code"].to_pylist())
        for row in true_rows(exchange, "suspend_d", day).to_pylist():
            whole_day = row["suspend_type"] == "S" and row["suspend_timing"] is None
            assert (row["ts_code"] in traded) != whole_day
            seen.add((row["suspend_type"], row["suspend_timing"] is None))
    assert seen == {("S", True), ("S", False), ("R", True)}

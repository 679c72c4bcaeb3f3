"""The market is a market: who is listed, what prices may do, what adds up to what."""

from __future__ import annotations

import hashlib
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sandbox.endpoints import ENDPOINTS
from sandbox.exchange import Exchange
from sandbox.market.market import Market
from sandbox.market.universe import BOARDS
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


def numbers(table: pa.Table, name: str) -> np.ndarray:
    return np.asarray(table[name].to_numpy(zero_copy_only=False))


def by_code(table: pa.Table, name: str) -> dict[str, Any]:
    return dict(zip(table["ts_code"].to_pylist(), table[name].to_pylist(), strict=True))


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


def test_nothing_but_eight_stocks_of_shanghai_on_the_first_day(exchange: Exchange) -> None:
    codes = listed_codes(exchange, date(1990, 12, 19))
    assert len(codes) == 8
    assert all(code.endswith(".SH") for code in codes)


def test_beijing_stocks_exist_from_its_opening_on(exchange: Exchange) -> None:
    assert not [code for code in listed_codes(exchange, date(2021, 11, 12)) if code.endswith(".BJ")]
    assert [code for code in listed_codes(exchange, date(2021, 11, 15)) if code.endswith(".BJ")]


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


def test_hundreds_of_stocks_have_been_delisted_and_keep_their_history(exchange: Exchange) -> None:
    gone = [row for row in true_rows(exchange, "stock_basic", DAY).to_pylist() if row["list_status"] == "D"]
    assert 300 <= len(gone) <= 500
    one = next(row for row in gone if row["delist_date"] > date(2022, 6, 1))
    before = exchange.open_days(date(2022, 1, 4), date(2022, 1, 4))[0]
    assert one["ts_code"] in true_rows(exchange, "adj_factor", before)["ts_code"].to_pylist()


# The same for everybody ---------------------------------------------------------------------------


def test_the_same_bytes_on_every_machine(exchange: Exchange) -> None:
    """If this fails after a deliberate change of the market, write down the new digest."""
    digest = hashlib.sha256()
    for table in ENDPOINTS:
        for day in SAMPLE_DAYS:
            digest.update(repr(true_rows(exchange, table, day).to_pylist()).encode())
    assert digest.hexdigest()[:16] == DIGEST


DIGEST = "28737b149c0e833b"


def test_another_seed_is_another_market() -> None:
    a, b = true_rows(Exchange(1), "daily", DAY), true_rows(Exchange(2), "daily", DAY)
    assert a["close"].to_pylist() != b["close"].to_pylist()


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


@pytest.mark.parametrize("day", SAMPLE_DAYS)
def test_a_day_of_prices_is_consistent(exchange: Exchange, day: date) -> None:
    table = true_rows(exchange, "daily", day)
    opened, high, low, close = (numbers(table, name) for name in ("open", "high", "low", "close"))
    pre_close, vol, amount = (numbers(table, name) for name in ("pre_close", "vol", "amount"))
    assert (low > 0).all()
    assert (low <= np.minimum(opened, close)).all()
    assert (high >= np.maximum(opened, close)).all()
    assert np.allclose(numbers(table, "change"), close - pre_close, atol=1e-9)
    assert np.allclose(numbers(table, "pct_chg"), (close - pre_close) / pre_close * 100, atol=6e-5)
    average = amount * 1000 / (vol * 100)
    assert ((average >= low - 1e-4) & (average <= high + 1e-4)).all()
    assert np.array_equal(np.round(close * 100), np.rint(close * 100))


@pytest.mark.parametrize(
    "day", [date(2003, 5, 6), date(2015, 6, 30), date(2020, 8, 21), date(2020, 8, 24), DAY]
)
def test_no_price_leaves_its_limits(exchange: Exchange, day: date) -> None:
    listed_at = by_code(true_rows(exchange, "stock_basic", day), "list_date")
    for row in true_rows(exchange, "daily", day).to_pylist():
        code = row["ts_code"]
        age = len(exchange.open_days(listed_at[code], day))
        if age <= 5:
            continue
        wide = code.startswith("688") or (code.startswith("30") and day >= date(2020, 8, 24))
        percent = 30 if code.endswith("BJ") else 20 if wide else 10
        cents = round(row["pre_close"] * 100)
        assert row["high"] <= (cents * (100 + percent) + 50) // 100 / 100, code
        assert row["low"] >= (cents * (100 - percent) + 50) // 100 / 100, code


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


def test_factors_start_at_one_only_rise_and_step_on_few_days(market: Market) -> None:
    for stock in range(0, 6000, 250):
        first = int(market.universe.listed_at[stock])
        day = np.arange(first, market.calendar.position(date(2026, 11, 18)))
        factor = market.prices.factor(np.full(len(day), stock), day)
        if len(factor) == 0:
            continue
        assert factor[0] == 1.0
        steps = np.flatnonzero(np.diff(factor))
        assert (np.diff(factor) >= 0).all()
        years = market.calendar.years[day[steps + 1]]
        assert len(years) == len(set(years.tolist()))


def test_about_one_stock_in_a_hundred_goes_ex_right_on_a_day_in_june(exchange: Exchange) -> None:
    before, after = (
        true_rows(exchange, "adj_factor", date(2026, 6, 16)),
        true_rows(exchange, "adj_factor", date(2026, 6, 17)),
    )
    old, new = by_code(before, "adj_factor"), by_code(after, "adj_factor")
    stepped = [code for code in old if code in new and old[code] != new[code]]
    assert 20 < len(stepped) < 200


# Suspensions -----------------------------------------------------------------------------------------


def test_suspended_stocks_have_a_factor_but_no_price(exchange: Exchange) -> None:
    whole_day = set(suspended_codes(exchange, DAY))
    assert 5 < len(whole_day) < 150
    assert not whole_day & set(true_rows(exchange, "daily", DAY)["ts_code"].to_pylist())
    assert not whole_day & set(true_rows(exchange, "daily_basic", DAY)["ts_code"].to_pylist())
    assert whole_day <= set(true_rows(exchange, "adj_factor", DAY)["ts_code"].to_pylist())


def test_stocks_halted_for_hours_and_stocks_that_resume_have_prices(exchange: Exchange) -> None:
    seen = set()
    for day in exchange.open_days(date(2026, 10, 1), DAY):
        traded = set(true_rows(exchange, "daily", day)["ts_code"].to_pylist())
        for row in true_rows(exchange, "suspend_d", day).to_pylist():
            whole_day = row["suspend_type"] == "S" and row["suspend_timing"] is None
            assert (row["ts_code"] in traded) != whole_day
            seen.add((row["suspend_type"], row["suspend_timing"] is None))
    assert seen == {("S", True), ("S", False), ("R", True)}


def test_spells_last_from_a_day_to_months_and_end_with_a_resumption(market: Market) -> None:
    length = (market.suspensions.end - market.suspensions.start)[:, :35]
    lengths = length[length > 0]
    assert lengths.min() == 1
    assert lengths.max() > 60
    stock, slot = np.argwhere(length > 20)[5]
    end = market.suspensions.end[stock, slot]
    assert market.suspensions.resumes(np.array([stock]), np.array([end])).all()
    assert not market.suspensions.suspended(np.array([stock]), np.array([end])).any()


# Other tables ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("day", [date(2009, 3, 2), DAY])
def test_values_follow_from_close_and_shares(exchange: Exchange, day: date) -> None:
    table, daily = true_rows(exchange, "daily_basic", day), true_rows(exchange, "daily", day)
    assert table["ts_code"] == daily["ts_code"]
    assert table["close"] == daily["close"]
    close, total, floating, free = (
        numbers(table, name) for name in ("close", "total_share", "float_share", "free_share")
    )
    assert np.allclose(numbers(table, "total_mv"), close * total, rtol=0, atol=6e-5)
    assert np.allclose(numbers(table, "circ_mv"), close * floating, rtol=0, atol=6e-5)
    assert (free <= floating).all()
    assert (floating <= total).all()
    vol = numbers(daily, "vol")
    assert np.allclose(numbers(table, "turnover_rate"), vol * 100 / (floating * 1e4) * 100, atol=1e-4)
    assert np.allclose(numbers(table, "turnover_rate_f"), vol * 100 / (free * 1e4) * 100, atol=1e-4)


def test_companies_with_losses_have_no_pe_and_nobody_has_zero(exchange: Exchange) -> None:
    table = true_rows(exchange, "daily_basic", DAY)
    assert 0.05 < table["pe"].null_count / len(table) < 0.4
    assert pc.min(table["pe"]).as_py() > 0
    assert table["pb"].null_count == 0


def test_a_split_brings_shares_and_takes_price(market: Market) -> None:
    shares = market.actions.shares
    grown = shares[:, 1:] / shares[:, :-1]
    stock, column = np.argwhere(grown[:4000] > 1.45)[0]
    ratio = market.actions.factor[stock, column + 1] / market.actions.factor[stock, column]
    assert ratio >= grown[stock, column] - 1e-3


def test_money_flows_add_up_to_the_days_trading(exchange: Exchange) -> None:
    flows, daily = true_rows(exchange, "moneyflow", DAY), true_rows(exchange, "daily", DAY)
    assert flows["ts_code"] == daily["ts_code"]
    for side in ("buy", "sell"):
        lots = sum(numbers(flows, f"{side}_{size}_vol") for size in ("sm", "md", "lg", "elg"))
        assert np.array_equal(lots, numbers(daily, "vol").astype(np.int64))
        amount = sum(numbers(flows, f"{side}_{size}_amount") for size in ("sm", "md", "lg", "elg"))
        assert np.allclose(amount, numbers(daily, "amount") / 10, atol=0.05)


def test_boards_never_run_out_of_codes(market: Market) -> None:
    codes = market.universe.codes
    assert len(set(codes.tolist())) == len(codes)
    assert np.array_equal(np.sort(codes), codes)
    assert len(BOARDS) == len(set(market.universe.boards.tolist()))

"""The numbers in the lake, calculated another way from the state of the sandbox's exchange."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import pytest

from domain.market.catalogue import catalogue
from tests.integration.services.market.market_app import API, FETCHED, PREPARED, TODAY, MarketApp
from tests.oracles.exchange import listed_codes, suspended_codes, true_rows

RICH = ("2024-06-05", "2024-06-06")
"""In early summer many stocks split and pay dividends."""


def by_code(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["ts_code"]: row for row in rows}


def truth(app: MarketApp, table: str, day: str) -> dict[str, dict[str, Any]]:
    return by_code(true_rows(app.exchange, API[table], date.fromisoformat(day)).to_pylist())


def lake(app: MarketApp, table: str, day: str) -> dict[str, dict[str, Any]]:
    return by_code(app.frame(table, day).to_pylist())


def test_fetched_tables__a_day__have_every_value_of_the_exchange(app: MarketApp) -> None:
    for table in FETCHED:
        columns = catalogue().by_name(table).table.schema.names
        want = true_rows(app.exchange, API[table], date.fromisoformat(TODAY)).select(columns)
        key = [(name, "ascending") for name in catalogue().by_name(table).table.key]
        got = app.frame(table, TODAY).select(columns)
        assert got.sort_by(key).to_pylist() == want.sort_by(key).to_pylist(), f"{table}: NULL stays NULL"


def test_fetched_tables__values__have_the_units_of_the_catalogue(app: MarketApp) -> None:
    """Volume in lots of 100, amounts in thousands, shares and values in ten thousands, rates in percent."""
    basic = lake(app, "normalized_daily_basic", TODAY)
    for code, row in lake(app, "normalized_daily", TODAY).items():
        average = row["amount"] * 1_000 / (row["vol"] * 100)
        assert row["low"] - 0.011 <= average <= row["high"] + 0.011, code
        assert row["change"] == pytest.approx(row["close"] - row["pre_close"], abs=0.005)
        assert row["pct_chg"] == pytest.approx(100 * row["change"] / row["pre_close"], abs=0.001)
        values = basic[code]
        assert values["close"] == row["close"]
        assert values["total_mv"] == pytest.approx(values["total_share"] * row["close"], rel=1e-4)
        assert values["circ_mv"] == pytest.approx(values["float_share"] * row["close"], rel=1e-4)
        turnover = 100 * row["vol"] * 100 / (values["float_share"] * 10_000)
        assert values["turnover_rate"] == pytest.approx(turnover, abs=0.001)


def test_adjusted_daily__prices__are_price_times_factor(app: MarketApp) -> None:
    prices, factors = (
        truth(app, "normalized_daily", TODAY),
        truth(app, "normalized_adj_factor", TODAY),
    )
    adjusted = lake(app, "adjusted_daily", TODAY)
    assert adjusted.keys() == prices.keys()
    for code, row in adjusted.items():
        factor = factors[code]["adj_factor"]
        assert row["adj_factor"] == factor
        for name in ("open", "high", "low", "close", "pre_close"):
            assert math.isclose(row[f"hfq_{name}"], prices[code][name] * factor, rel_tol=1e-12)
        assert (row["vol"], row["amount"]) == (prices[code]["vol"], prices[code]["amount"])


@pytest.fixture
def rich_app(app: MarketApp) -> MarketApp:
    """A home that also has two days around many splits and dividends."""
    tables = ("--table", "normalized_daily", "--table", "normalized_adj_factor", "--table", "suspensions")
    said = app.run("market", "backfill", "--from", RICH[0], "--to", RICH[1], *tables)
    assert said.code == 0, said.err
    return app


def test_adjusted_daily__splits_and_dividends__moves_as_a_holder_earned(rich_app: MarketApp) -> None:
    """Across splits and dividends the adjusted close moves as close / ex-right previous close does."""
    app = rich_app
    before, today = (lake(app, "adjusted_daily", day) for day in RICH)
    prices = truth(app, "normalized_daily", RICH[1])
    stepped = [c for c in today.keys() & before.keys() if today[c]["adj_factor"] != before[c]["adj_factor"]]
    assert len(stepped) > 50, "too few stocks went ex-right: other days would prove more"
    for code in today.keys() & before.keys():
        held = today[code]["hfq_close"] / before[code]["hfq_close"]
        cent = 0.006 / prices[code]["pre_close"]
        assert held == pytest.approx(prices[code]["close"] / prices[code]["pre_close"], rel=cent + 1e-4), code


def test_qfq_daily__splits_and_dividends__ends_at_the_price_of_today(rich_app: MarketApp) -> None:
    """qfq: the newest price is the price itself, older ones are scaled by the factors since."""
    app = rich_app
    newest = {code: row["adj_factor"] for code, row in truth(app, "normalized_adj_factor", TODAY).items()}
    factors = truth(app, "normalized_adj_factor", RICH[0])
    now, then = lake(app, "qfq_daily", TODAY), lake(app, "qfq_daily", RICH[0])
    for code, row in truth(app, "normalized_daily", TODAY).items():
        assert now[code]["qfq_close"] == pytest.approx(row["close"], rel=1e-12)
    scaled = 0
    for code, row in truth(app, "normalized_daily", RICH[0]).items():
        if code in newest:
            ratio = factors[code]["adj_factor"] / newest[code]
            scaled += ratio != 1
            assert then[code]["qfq_close"] == pytest.approx(row["close"] * ratio, rel=1e-12)
    assert scaled > 50


def test_coverage__complete_days__counts_who_was_listed_and_traded(app: MarketApp) -> None:
    for text in PREPARED[-2:]:
        day = date.fromisoformat(text)
        listed, suspended = (
            set(listed_codes(app.exchange, day)),
            set(suspended_codes(app.exchange, day)),
        )
        expected = {
            "normalized_daily": len(listed - suspended),
            "normalized_adj_factor": len(listed),
            "normalized_daily_basic": len(listed - suspended),
            "suspensions": None,
        }
        rows = app.sql(f"SELECT * FROM market.coverage WHERE trade_date = DATE '{text}'")
        assert {row["table_name"]: row["expected"] for row in rows} == expected
        assert all(row["ratio"] == 1.0 for row in rows if row["expected"])
        assert all(
            (row["missing_stocks"], row["unexpected_stocks"]) in ((0, 0), (None, None)) for row in rows
        )
        assert {row["status"] for row in rows} == {"complete"}
        versions = {t: app.market.lake.version(f"market.{t}", text) for t in FETCHED}
        assert {row["table_name"]: (row["rows"], row["digest"]) for row in rows} == {
            table: (version.rows, version.digest) for table, version in versions.items()
        }


def test_coverage__stocks_missing__names_them(app: MarketApp) -> None:
    day = date.fromisoformat(TODAY)
    held = app.frame("normalized_daily", TODAY)
    gone = sorted(held["ts_code"].to_pylist())[100:103]
    kept = held.filter([code not in gone for code in held["ts_code"].to_pylist()])
    app.market.lake.replace("market.normalized_daily", TODAY, kept)
    app.stop_source()
    with app.instance() as instance:
        app.materialize(instance, ["coverage"], TODAY)
    row = app.sql(
        f"SELECT * FROM market.coverage WHERE trade_date = DATE '{day}' AND table_name = 'normalized_daily'"
    )[0]
    assert (row["missing_stocks"], row["missing_sample"]) == (3, " ".join(gone))


def test_references__all_rows__are_the_exchanges_own(app: MarketApp) -> None:
    day = date.fromisoformat(TODAY)
    calendar = app.market.lake.sql(
        "SELECT exchange, cal_date, CAST(is_open AS BIGINT) AS is_open, pretrade_date "
        "FROM market.normalized_trade_cal WHERE year = 2024 ORDER BY exchange, cal_date"
    )
    key = [("exchange", "ascending"), ("cal_date", "ascending")]
    assert calendar.to_pylist() == true_rows(app.exchange, "trade_cal", day).sort_by(key).to_pylist()
    columns = catalogue().stocks.table.schema.names
    stocks = app.market.lake.sql("SELECT * FROM market.normalized_stock_basic ORDER BY ts_code")
    want = true_rows(app.exchange, "stock_basic", day).select(columns).sort_by("ts_code")
    assert stocks.select(columns).to_pylist() == want.to_pylist()
    assert {"L", "D"} <= set(stocks["list_status"].to_pylist())

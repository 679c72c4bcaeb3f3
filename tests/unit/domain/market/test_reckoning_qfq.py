"""Forward-adjusted prices, computed at read time: price × factor / the newest factor there is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.market.tables import QFQ_DAILY, views
from domain.shared.compute import connection
from tests.unit.domain.market.frames import CODES, DAYS, FIRST, PRICES, arrow
from tests.unit.domain.market.world import CATALOGUE

DAILY = CATALOGUE.by_name("normalized_daily").table.schema
FACTORS = CATALOGUE.by_name("normalized_adj_factor").table.schema
ADJUSTED = ("open", "high", "low", "close", "pre_close")
Places = Mapping[tuple[date, str], float]
LATER = date(2026, 11, 4)


def forward_adjusted(
    prices: list[dict[str, Any]], factors: Places
) -> dict[tuple[date, str], dict[str, float | None]]:
    daily = arrow(prices, DAILY)
    factor_rows = [{"trade_date": d, "ts_code": c, "adj_factor": f} for (d, c), f in factors.items()]
    with connection(daily=daily, factors=arrow(factor_rows, FACTORS)) as con:
        con.execute("CREATE SCHEMA IF NOT EXISTS market")
        con.execute("CREATE OR REPLACE TABLE market.normalized_daily AS SELECT * FROM daily")
        con.execute("CREATE OR REPLACE TABLE market.normalized_adj_factor AS SELECT * FROM factors")
        rows = con.sql(views()[QFQ_DAILY]).to_arrow_table().to_pylist()
    assert len(rows) == len(prices), "one row per price"
    return {(row["trade_date"], row["ts_code"]): row for row in rows}


def price_row(day: date, code: str, **values: float | None) -> dict[str, Any]:
    return {"trade_date": day, "ts_code": code, **values}


@given(
    st.data(),
    st.lists(st.tuples(DAYS, st.sampled_from(CODES)), unique=True, max_size=30),
    st.dictionaries(st.tuples(DAYS, st.sampled_from(CODES)), st.floats(0.1, 500), max_size=30),
)
@settings(max_examples=10, deadline=None)
def test_qfq_daily__any_prices__are_those_computed_by_hand(
    data: st.DataObject, keys: list[tuple[date, str]], factors: dict[tuple[date, str], float]
) -> None:
    prices = [price_row(day, code, **{name: data.draw(PRICES) for name in ADJUSTED}) for day, code in keys]
    found = forward_adjusted(prices, factors)
    for row in prices:
        day, code = row["trade_date"], row["ts_code"]
        known = {d: f for (d, c), f in factors.items() if c == code}
        for name in ADJUSTED:
            price, factor = row[name], known.get(day)
            wanted = None if price is None or factor is None else price * factor / known[max(known)]
            assert found[day, code][f"qfq_{name}"] == wanted


def test_qfq_daily__ex_date__changes_the_history_before_it() -> None:
    prices = [price_row(FIRST, "600000.SH", close=100.0)]
    before = {(FIRST, "600000.SH"): 3.0}
    after = {**before, (LATER, "600000.SH"): 30.0}
    closes = [forward_adjusted(prices, f)[FIRST, "600000.SH"]["qfq_close"] for f in (before, after)]
    assert closes == [pytest.approx(100.0), pytest.approx(10.0)]

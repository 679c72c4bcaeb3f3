"""Back-adjusted prices: price × factor, and never a guess."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.market.reckoning import adjusted_daily
from domain.market.tables import ADJUSTED_DAILY
from tests.unit.domain.market.frames import CODES, DAYS, FIRST, PRICES, arrow
from tests.unit.domain.market.world import CATALOGUE

DAILY = CATALOGUE.by_name("normalized_daily").table.schema
FACTORS = CATALOGUE.by_name("normalized_adj_factor").table.schema
ADJUSTED = ("open", "high", "low", "close", "pre_close")
MEASURES = (*ADJUSTED, "change", "pct_chg", "vol", "amount")
KEYS = st.lists(st.tuples(DAYS, st.sampled_from(CODES)), unique=True, max_size=12)


def price_row(day: date, code: str, **values: float | None) -> dict[str, Any]:
    return {"trade_date": day, "ts_code": code, **dict.fromkeys(MEASURES, 1.0), **values}


def adjusted(
    prices: Sequence[Mapping[str, Any]], factors: Mapping[tuple[date, str], float]
) -> list[dict[str, Any]]:
    table = adjusted_daily(
        arrow(prices, DAILY),
        arrow([{"trade_date": d, "ts_code": c, "adj_factor": f} for (d, c), f in factors.items()], FACTORS),
    )
    assert table.schema == ADJUSTED_DAILY.schema
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def by_hand(row: Mapping[str, Any], factor: float | None) -> dict[str, Any]:
    def times(price: float | None) -> float | None:
        return None if price is None or factor is None else price * factor

    return {
        "trade_date": row["trade_date"],
        "ts_code": row["ts_code"],
        "adj_factor": factor,
        **{f"hfq_{name}": times(row[name]) for name in ADJUSTED},
        "vol": row["vol"],
        "amount": row["amount"],
    }


@given(st.data(), KEYS, st.dictionaries(st.tuples(DAYS, st.sampled_from(CODES)), st.floats(0.1, 500)))
@settings(max_examples=12, deadline=None)
def test_adjusted_daily__any_prices__are_price_times_factor(
    data: st.DataObject, keys: list[tuple[date, str]], factors: dict[tuple[date, str], float]
) -> None:
    prices = [
        price_row(day, code, **{name: data.draw(PRICES) for name in (*ADJUSTED, "vol", "amount")})
        for day, code in keys
    ]
    wanted = sorted(
        (by_hand(row, factors.get((row["trade_date"], row["ts_code"]))) for row in prices),
        key=lambda row: (row["trade_date"], row["ts_code"]),
    )
    assert adjusted(prices, factors) == wanted, "to the last bit"


def test_adjusted_daily__split__leaves_no_step() -> None:
    """Ten for one: the price falls to a tenth, the factor is ten times as large."""
    before, after = FIRST, date(2026, 11, 3)
    rows = adjusted(
        [
            price_row(before, "600000.SH", close=100.0),
            price_row(after, "600000.SH", pre_close=10.0, close=10.5),
        ],
        {(before, "600000.SH"): 3.0, (after, "600000.SH"): 30.0},
    )
    assert rows[1]["hfq_pre_close"] == pytest.approx(rows[0]["hfq_close"])
    assert rows[1]["hfq_close"] / rows[0]["hfq_close"] == pytest.approx(1.05)

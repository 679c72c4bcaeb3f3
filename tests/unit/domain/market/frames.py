"""Small random markets: stocks, suspensions and days as Arrow tables, drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

FIRST = date(2026, 11, 2)
CODES = [f"{n:06}.SZ" for n in range(1, 10)]
STOCKS = pa.schema([("ts_code", pa.string()), ("list_date", pa.date32()), ("delist_date", pa.date32())])
SUSPENSIONS = pa.schema(
    [
        ("trade_date", pa.date32()),
        ("ts_code", pa.string()),
        ("suspend_timing", pa.string()),
        ("suspend_type", pa.string()),
    ]
)
PRESENT = pa.schema([("table_name", pa.string()), ("trade_date", pa.date32()), ("ts_code", pa.string())])

DAYS = st.integers(0, 6).map(lambda n: FIRST + timedelta(days=n))
PRICES = st.none() | st.floats(0.01, 5_000, allow_nan=False)

Rows = Sequence[Mapping[str, Any]]


def arrow(rows: Rows, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=schema)


@dataclass(frozen=True)
class Exchange:
    """Stocks, suspensions and the days to look at, and the same questions answered one by one."""

    days: list[date]
    stocks: Rows
    suspended: Rows

    @property
    def stock_table(self) -> pa.Table:
        return arrow(self.stocks, STOCKS)

    @property
    def suspension_table(self) -> pa.Table:
        return arrow(self.suspended, SUSPENSIONS)

    def listed(self, day: date) -> set[str]:
        """Listed from its first day on, and not on the day from which it is delisted."""
        return {
            s["ts_code"]
            for s in self.stocks
            if s["list_date"] is not None
            and s["list_date"] <= day
            and not (s["delist_date"] is not None and s["delist_date"] <= day)
        }

    def traded(self, day: date) -> set[str]:
        """Those listed without those suspended for the whole day: S, and no timing."""
        return self.listed(day) - {
            s["ts_code"]
            for s in self.suspended
            if s["trade_date"] == day and s["suspend_type"] == "S" and s["suspend_timing"] is None
        }

    def wanted(self, reference: str, day: date) -> set[str]:
        return {"listed": self.listed, "listed_less_suspended": self.traded}[reference](day)


@st.composite
def exchanges(draw: st.DrawFn) -> Exchange:
    stocks = [
        {"ts_code": code, "list_date": draw(st.none() | DAYS), "delist_date": draw(st.none() | DAYS)}
        for code in draw(st.lists(st.sampled_from(CODES), unique=True))
    ]
    suspended = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "trade_date": DAYS,
                    "ts_code": st.sampled_from([*CODES, "999999.SH"]),
                    "suspend_timing": st.sampled_from([None, "09:30-10:00", "13:00-14:00"]),
                    "suspend_type": st.sampled_from(["S", "R"]),
                }
            ),
            max_size=40,
        )
    )
    return Exchange(draw(st.lists(DAYS, unique=True)), stocks, suspended)

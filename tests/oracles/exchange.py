"""What the sandbox's market holds at any hour: its numbers without any of the server's code."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from sandbox.endpoints import ENDPOINTS, Endpoint, Type
from sandbox.exchange import Exchange
from sandbox.market import reference
from sandbox.market.calendar import OPENED
from sandbox.market.market import WHOLE_DAY, Cells, Columns

_ARROW = {"text": pa.string(), "day": pa.date32(), "number": pa.float64(), "count": pa.int64()}
_KEY = ("exchange", "cal_date", "trade_date", "ts_code", "suspend_type")


def true_rows(exchange: Exchange, table: str, day: date) -> pa.Table:
    """All rows of an endpoint on a day, typed, sorted by key; no row cap, no clock.

    `trade_cal` gives the year of the day for all exchanges, `stock_basic` the list as known on the day.
    """
    if table == "trade_cal":
        year = date(day.year, 1, 1), date(day.year, 12, 31)
        parts = [reference.trade_cal(exchange.market, name, *year) for name in OPENED]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    elif table == "stock_basic":
        columns = reference.stock_basic(exchange.market, day)
    else:
        columns = exchange.day_columns(table, _cells(exchange, table, day))
    return _typed(ENDPOINTS[table], columns)


def listed_codes(exchange: Exchange, day: date) -> list[str]:
    """Stocks listed on an open day (list_date <= day < delist_date)."""
    universe, n = exchange.market.universe, exchange.market.calendar.index(day)
    codes: list[str] = [] if n is None else universe.codes[universe.listed(n)].tolist()
    return codes


def suspended_codes(exchange: Exchange, day: date) -> list[str]:
    """Stocks that do not trade at all on an open day."""
    cells = _cells(exchange, "suspend_d", day)
    codes: list[str] = exchange.market.universe.codes[cells.stock[cells.kind == WHOLE_DAY]].tolist()
    return codes


def _cells(exchange: Exchange, table: str, day: date) -> Cells:
    n = exchange.market.calendar.index(day)
    if n is None:
        none = np.array([], dtype=np.int64)
        return Cells(none, none, none)
    return exchange.market.whole_day(table, n)


def _typed(endpoint: Endpoint, columns: Columns) -> pa.Table:
    arrays = [_array(columns[field.name], field.type) for field in endpoint.fields]
    table = pa.table(arrays, names=[field.name for field in endpoint.fields])
    key = ("ts_code",) if endpoint.name == "stock_basic" else _KEY
    return table.sort_by([(name, "ascending") for name in key if name in columns])


def _array(values: np.ndarray, kind: Type) -> pa.Array:
    listed: list[Any] = values.tolist()
    if kind == "day":
        listed = [text and date(int(text[:4]), int(text[4:6]), int(text[6:])) for text in listed]
    return pa.array(listed, type=_ARROW[kind], from_pandas=kind == "number")

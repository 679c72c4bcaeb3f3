"""The market's numbers as an Arrow table, made without any of the server's code."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from sandbox.endpoints import Endpoint, Type
from sandbox.market.market import Columns

_ARROW = {"text": pa.string(), "day": pa.date32(), "number": pa.float64(), "count": pa.int64()}
_KEY = ("exchange", "cal_date", "trade_date", "ts_code", "suspend_type")


def typed(endpoint: Endpoint, columns: Columns) -> pa.Table:
    arrays = [_array(columns[field.name], field.type) for field in endpoint.fields]
    table = pa.table(arrays, names=[field.name for field in endpoint.fields])
    key = ("ts_code",) if endpoint.name == "stock_basic" else _KEY
    return table.sort_by([(name, "ascending") for name in key if name in columns])


def _array(values: np.ndarray, kind: Type) -> pa.Array:
    listed: list[Any] = values.tolist()
    if kind == "day":
        listed = [None if text is None else _date(text) for text in listed]
    return pa.array(listed, type=_ARROW[kind], from_pandas=kind == "number")


def _date(text: str) -> date:
    return date(int(text[:4]), int(text[4:6]), int(text[6:]))

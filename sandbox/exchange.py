"""The exchange: a market that answers queries as a source would.

`rows` is what a caller is shown at a moment: only what has been published, at most a page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property, lru_cache

import numpy as np

from sandbox.endpoints import SHANGHAI
from sandbox.market import market as whole
from sandbox.market import reference
from sandbox.market.market import Cells, Columns, Market
from sandbox.query import Query

SEED = 20261118
"""The market everybody sees unless they ask for another."""


@dataclass(frozen=True)
class Page:
    """Columns of all fields the endpoint has, and whether the query has more rows than these."""

    columns: Columns
    has_more: bool

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


@lru_cache(maxsize=4)
def _market(seed: int) -> Market:
    return whole.build(seed)


class Exchange:
    """Thread-safe: nothing changes after the market is built."""

    def __init__(self, seed: int = SEED) -> None:
        self.seed = seed
        self.market = _market(seed)

    def open_days(self, start: date, end: date) -> list[date]:
        """Trading days of Shanghai from `start` to `end`, both included."""
        return self.market.calendar.open_days(start, end)

    def rows(self, query: Query, now: datetime) -> Page:
        if query.endpoint.by_day:
            cells, has_more = self._page(query, query.endpoint.visible_until(now))
            return Page(self.day_columns(query.endpoint.name, cells), has_more)
        today = now.astimezone(SHANGHAI).date()
        if query.endpoint.name == "trade_cal":
            last = reference.announced_until(today)
            end = min(query.end or last, last)
            columns = reference.trade_cal(self.market, query.exchange, query.start or date.min, end)
        else:
            columns = self._stock_list(today)
        return _cut(_filtered(columns, query), query)

    @cached_property
    def _stock_list(self) -> Callable[[date], Columns]:
        return lru_cache(maxsize=8)(lambda today: reference.stock_basic(self.market, today))

    def _page(self, query: Query, visible_until: date) -> tuple[Cells, bool]:
        """The cells of a by-day query, newest day first, stocks in order, cut to the page."""
        calendar = self.market.calendar
        first = calendar.position(query.trade_date or query.start or date.min)
        last = min(query.trade_date or query.end or date.max - timedelta(days=1), visible_until)
        end = calendar.position(last + timedelta(days=1))
        wanted = query.offset + query.limit
        stocks = self._stocks(query.codes)
        # One day at a time for the whole market; all days at once for a few stocks.
        step = 1 if not query.codes else max(1, 200_000 // max(1, len(stocks)))
        found: list[Cells] = []
        count = 0
        while end > first and count <= wanted:
            start = max(first, end - step)
            cells = _chosen(self._block(query.endpoint.name, stocks, start, end), query)
            found.append(cells)
            count += len(cells)
            end = start
        cells = _joined(found)
        whole = query.offset == 0 and count <= query.limit
        return cells if whole else cells.take(slice(query.offset, wanted)), count > wanted

    def _stocks(self, codes: tuple[str, ...]) -> np.ndarray:
        every = self.market.universe.codes
        if not codes:
            return np.arange(len(every))
        at = np.minimum(np.searchsorted(every, np.array(codes)), len(every) - 1)
        return np.unique(at[every[at] == np.array(codes)])

    def _block(self, table: str, stocks: np.ndarray, start: int, end: int) -> Cells:
        """Cells of trading days [start, end), newest first."""
        if end - start == 1 and len(stocks) == len(self.market.universe):
            return self.market.whole_day(table, start)
        days = np.arange(end - 1, start - 1, -1)
        return self.market.cells(table, np.tile(stocks, len(days)), np.repeat(days, len(stocks)))

    def day_columns(self, table: str, cells: Cells) -> Columns:
        texts = self._day_texts
        return {
            "ts_code": self.market.universe.codes[cells.stock],
            "trade_date": texts[cells.day],
            **self.market.columns(table, cells),
        }

    @cached_property
    def _day_texts(self) -> np.ndarray:
        return np.array(self.market.calendar.texts)


def _chosen(cells: Cells, query: Query) -> Cells:
    types = dict(query.choices).get("suspend_type")
    if not types:
        return cells
    return cells.take(np.isin(whole.SUSPEND_TYPES[cells.kind], types))


def _joined(parts: list[Cells]) -> Cells:
    if len(parts) == 1:
        return parts[0]
    none = np.array([], dtype=np.int64)
    stock, day, kind = (
        np.concatenate([none, *(getattr(part, name) for part in parts)]) for name in ("stock", "day", "kind")
    )
    return Cells(stock, day, kind)


def _filtered(columns: Columns, query: Query) -> Columns:
    keep = np.ones(len(next(iter(columns.values()))), dtype=bool)
    for name, values in query.choices:
        column = columns[name]
        keep &= np.isin(column.astype(str), values)
    if query.codes:
        keep &= np.isin(columns["ts_code"].astype(str), query.codes)
    return {name: column[keep] for name, column in columns.items()}


def _cut(columns: Columns, query: Query) -> Page:
    total = len(next(iter(columns.values())))
    page = slice(query.offset, query.offset + query.limit)
    return Page({name: column[page] for name, column in columns.items()}, total > query.offset + query.limit)

"""The whole market in one object, and its tables as columns for any (stock, day) cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from sandbox.market import actions, calendar, flows, names, prices, suspensions, universe, valuation
from sandbox.market.noise import Ints
from sandbox.market.prices import Prices, Quotes

Columns = dict[str, np.ndarray]

_DAYS_KEPT = 32

WHOLE_DAY, PART_OF_DAY, RESUMED = 0, 1, 2
"""What a row of suspend_d says."""

SUSPEND_TYPES = np.array(["S", "S", "R"])
"""The letter for each of them."""


@dataclass(frozen=True)
class Cells:
    """Rows to be: which stock, which trading day, and for suspend_d which kind of row."""

    stock: Ints
    day: Ints
    kind: Ints
    whole: int | None = None
    """The trading day, if these are all its rows: what several tables need of it is computed once."""

    def __len__(self) -> int:
        return len(self.stock)

    def take(self, chosen: slice | np.ndarray) -> Cells:
        return Cells(self.stock[chosen], self.day[chosen], self.kind[chosen])


@dataclass(frozen=True)
class Market:
    calendar: calendar.Calendar
    universe: universe.Universe
    suspensions: suspensions.Suspensions
    actions: actions.Actions
    prices: Prices
    valuation: valuation.Valuation
    flows: flows.Flows
    companies: list[names.Company]

    def cells(self, table: str, stock: Ints, day: Ints) -> Cells:
        """Those of the given pairs for which `table` has rows."""
        here = prices.is_listed(self.universe, stock, day)
        stock, day = stock[here], day[here]
        if table == "adj_factor":
            return Cells(stock, day, np.zeros(len(stock), dtype=np.int64))
        if table == "suspend_d":
            return self._suspension_cells(stock, day)
        trading = ~self.suspensions.suspended(stock, day)
        return Cells(stock[trading], day[trading], np.zeros(int(trading.sum()), dtype=np.int64))

    def _suspension_cells(self, stock: Ints, day: Ints) -> Cells:
        whole = self.suspensions.suspended(stock, day)
        found = (
            (WHOLE_DAY, whole),
            (PART_OF_DAY, ~whole & (self.suspensions.timing(stock, day) >= 0)),
            (RESUMED, self.suspensions.resumes(stock, day)),
        )
        at = np.concatenate([np.flatnonzero(mask) for _, mask in found])
        kind = np.concatenate([np.full(int(mask.sum()), kind) for kind, mask in found])
        order = np.lexsort((kind, at))
        return Cells(stock[at[order]], day[at[order]], kind[order])

    def columns(self, table: str, cells: Cells) -> Columns:
        """The values of the rows, without ts_code and trade_date."""
        stock, day = cells.stock, cells.day
        if table == "adj_factor":
            return {"adj_factor": self.prices.factor(stock, day)}
        if table == "suspend_d":
            return self._suspension_columns(cells)
        if table == "daily_basic":
            return self.valuation.columns(stock, day, self._quotes(cells))
        if table == "moneyflow":
            return self.flows.columns(stock, day, self._quotes(cells))
        return _daily_columns(self._quotes(cells))

    def whole_day(self, table: str, day: int) -> Cells:
        """All rows of `table` on a trading day."""
        stock = self.universe.listed(day)
        cells = self.cells(table, stock, np.full(len(stock), day))
        return replace(cells, whole=day)

    def _quotes(self, cells: Cells) -> Quotes:
        if cells.whole is None:
            return self.prices.quotes(cells.stock, cells.day)
        return self._quotes_of_day(cells.whole)

    @cached_property
    def _quotes_of_day(self) -> Callable[[int], Quotes]:
        def compute(day: int) -> Quotes:
            cells = self.whole_day("daily", day)
            return self.prices.quotes(cells.stock, cells.day)

        return lru_cache(maxsize=_DAYS_KEPT)(compute)

    def _suspension_columns(self, cells: Cells) -> Columns:
        timings = np.array([*suspensions.TIMINGS, None], dtype=object)
        partial = cells.kind == PART_OF_DAY
        where = np.where(partial, self.suspensions.timing(cells.stock, cells.day), len(suspensions.TIMINGS))
        return {
            "suspend_timing": timings[where],
            "suspend_type": SUSPEND_TYPES[cells.kind].astype(object),
        }


def build(seed: int) -> Market:
    days = calendar.Calendar.load()
    stocks = universe.build(days, seed)
    spells = suspensions.build(days, stocks, seed)
    events = actions.build(days, stocks, spells, seed)
    quotes = prices.build(days, stocks, spells, events, seed)
    return Market(
        calendar=days,
        universe=stocks,
        suspensions=spells,
        actions=events,
        prices=quotes,
        valuation=valuation.build(quotes, seed),
        flows=flows.build(quotes, seed),
        companies=names.companies(stocks, seed),
    )


def _daily_columns(quotes: Quotes) -> Columns:
    change = quotes.close - quotes.pre_close
    return {
        "open": quotes.open / 100.0,
        "high": quotes.high / 100.0,
        "low": quotes.low / 100.0,
        "close": quotes.close / 100.0,
        "pre_close": quotes.pre_close / 100.0,
        "change": change / 100.0,
        "pct_chg": np.rint(change * 1e6 / quotes.pre_close) / 1e4,
        "vol": quotes.shares / 100.0,
        "amount": quotes.amount / 1000.0,
    }

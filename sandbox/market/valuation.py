"""What a stock is worth: the figures of `daily_basic`, all derived from its close and its shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sandbox.market import noise
from sandbox.market.actions import FIRST_YEAR
from sandbox.market.noise import Floats, Ints, Keys
from sandbox.market.prices import Prices, Quotes

_TEN_THOUSAND = 1e4
_LOSS_CHANCE = 0.18
_REPORT_DAY = 80
"""Trading days into a year after which last year's report is out."""


def rounded(values: Floats, decimals: int) -> Floats:
    scale = float(10**decimals)
    return np.rint(values * scale) / scale


@dataclass(frozen=True)
class Valuation:
    prices: Prices
    keys: dict[str, Keys]

    def earnings_yield(self, stock: Ints, year: Ints) -> Floats:
        """Profit of a fiscal year by the stock's base price; negative for a loss."""
        u = noise.uniform(self.keys["earnings"][stock], year)
        steady = noise.uniform(self.keys["earnings"][stock], 0)
        profit = 0.004 + 0.07 * steady * (0.5 + u)
        return np.where(u < _LOSS_CHANCE * 2.0 * (1.0 - steady), -profit, profit)

    def columns(self, stock: Ints, day: Ints, quotes: Quotes) -> dict[str, np.ndarray]:
        prices, actions = self.prices, self.prices.actions
        close = quotes.close / 100.0
        total = actions.shares[stock, actions.column(stock, day)] / _TEN_THOUSAND
        floating = prices.floating(stock, day) / _TEN_THOUSAND
        free = rounded(floating * (0.35 + 0.6 * noise.uniform(self.keys["free"][stock], 0)), 4)
        traded = quotes.shares / _TEN_THOUSAND
        value = close * total
        book = prices.base[stock] * total
        fiscal, ttm = self._fiscal(stock, day), self._trailing(stock, day)
        margin = 0.03 + 0.3 * noise.uniform(self.keys["margin"][stock], 0)
        return {
            "close": close,
            "turnover_rate": rounded(traded / floating * 100.0, 4),
            "turnover_rate_f": rounded(traded / free * 100.0, 4),
            "volume_ratio": self._volume_ratio(stock, day),
            "pe": _positive(value / (book * fiscal)),
            "pe_ttm": _positive(value / (book * ttm)),
            "pb": rounded(value / (book * (0.15 + 0.7 * noise.uniform(self.keys["book"][stock], 0))), 4),
            "ps": rounded(value * margin / (book * np.abs(fiscal)), 4),
            "ps_ttm": rounded(value * margin / (book * np.abs(ttm)), 4),
            "dv_ratio": self._dividend(stock, day, 1),
            "dv_ttm": self._dividend(stock, day, 0),
            "total_share": total,
            "float_share": floating,
            "free_share": free,
            "total_mv": rounded(value, 4),
            "circ_mv": rounded(close * floating, 4),
        }

    def _fiscal(self, stock: Ints, day: Ints) -> Floats:
        """The yield of the last reported year."""
        year = self.prices.calendar.years[np.maximum(day - _REPORT_DAY, 0)]
        return self.earnings_yield(stock, year - 1)

    def _trailing(self, stock: Ints, day: Ints) -> Floats:
        """Half the last reported year, half the one before it was reported: moves twice a year."""
        year = self.prices.calendar.years[np.maximum(day - 2 * _REPORT_DAY, 0)]
        return 0.5 * (self._fiscal(stock, day) + self.earnings_yield(stock, year))

    def _volume_ratio(self, stock: Ints, day: Ints) -> Floats:
        """Today's turnover by the mean of the five traded days before; null on a stock's first days."""
        time = self.prices.suspensions.traded_days(stock, day)
        before = sum(self.prices.turnover_at(stock, time - back) for back in range(1, 6)) / 5.0
        ratio = rounded(self.prices.turnover_at(stock, time) / before, 2)
        return np.where(day - self.prices.universe.listed_at[stock] < 5, np.nan, ratio)

    def _dividend(self, stock: Ints, day: Ints, back: int) -> Floats:
        """Dividends in percent of the price; null where none was paid."""
        actions = self.prices.actions
        calendar_year = actions.years[day] - FIRST_YEAR
        column = np.maximum(calendar_year - 1, 0) if back else actions.column(stock, day)
        paid = actions.cash_yield[stock, column]
        return np.where(paid > 0, rounded(paid * 100.0, 4), np.nan)


def _positive(ratio: Floats) -> Floats:
    return np.where(ratio > 0, rounded(ratio, 4), np.nan)


def build(prices: Prices, seed: int) -> Valuation:
    stocks = np.arange(len(prices.universe))
    streams = ("earnings", "free", "margin", "book")
    return Valuation(prices, {name: noise.keys(seed, name, stocks) for name in streams})

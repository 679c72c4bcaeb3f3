"""Prices and volumes of any stocks on any days, as whole numbers: cents and shares.

A back-adjusted price is the stock's trend (see actions) times noise; the raw price is that divided by
adj_factor, rounded to a cent. The noise is bounded so that no day ever needs clipping to its price limit,
which would make a price depend on all days before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from sandbox.market import noise
from sandbox.market.actions import Actions
from sandbox.market.calendar import Calendar
from sandbox.market.noise import Flags, Floats, Ints, Keys
from sandbox.market.suspensions import Suspensions
from sandbox.market.universe import BOARDS, CHINEXT, CHINEXT_WIDENED, LIMITS_SINCE, Universe

_OCTAVES = ((700, 0.55), (90, 0.24), (12, 0.06))
"""Spacing in traded days and amplitude in log price: slow swings are wide, quick ones narrow."""

_DAILY = 0.032
_MARKET_DAILY = 0.005
_FREE = 10_000
"""The limit, in percent, of a day without one."""


@dataclass(frozen=True)
class Quotes:
    """One row per asked (stock, day); prices in cents, `shares` and `amount` (CNY) of the day's trading."""

    open: Ints
    high: Ints
    low: Ints
    close: Ints
    pre_close: Ints
    shares: Ints
    amount: Ints


@dataclass(frozen=True)
class Prices:
    calendar: Calendar
    universe: Universe
    suspensions: Suspensions
    actions: Actions
    base: Floats
    """The price in CNY around which a stock's raw price swings."""

    keys: dict[str, Keys]

    def factor(self, stock: Ints, day: Ints) -> Floats:
        """adj_factor of each day."""
        return self.actions.factor[stock, self.actions.column(stock, day)]

    def close(self, stock: Ints, day: Ints) -> Ints:
        """Raw closing prices in cents. Only traded days have a meaning."""
        column = self.actions.column(stock, day)
        time = self.suspensions.traded_days(stock, day)
        level = noise.bell(self.keys["close"][stock], time) * _DAILY
        level += noise.bell(self.keys["market"], day) * _MARKET_DAILY
        for spacing, amplitude in _OCTAVES:
            level += noise.smooth(self.keys[f"octave-{spacing}"][stock], time, spacing) * amplitude
        adjusted = self.base[stock] * self.actions.trend(stock, column, time) * noise.exp(level)
        return np.rint(adjusted / self.actions.factor[stock, column] * 100.0).astype(np.int64)

    def pre_close(self, stock: Ints, day: Ints, close: Ints) -> Ints:
        """The ex-right previous close in cents; on the first day the issue price."""
        before = np.maximum(self.suspensions.previous_traded(stock, day), self.universe.listed_at[stock])
        ratio = self.factor(stock, before) / self.factor(stock, day)
        last = np.rint(self.close(stock, before) * ratio).astype(np.int64)
        pop = noise.uniform(self.keys["pop"][stock], 0)
        freed = day >= self.calendar.position(_IPO_FREED)
        capped = (BOARD_LIMITS[self.universe.boards[stock]] == 10) & ~freed
        gain = np.where(capped, 0.42 * pop, 2.0 * pop * pop)
        issue = np.rint(close / (1.0 + gain)).astype(np.int64)
        return np.where(day == self.universe.listed_at[stock], issue, last)

    def limit_percent(self, stock: Ints, day: Ints) -> Ints:
        """How far each price may move that day, in percent; a very large number on free days."""
        board = self.universe.boards[stock]
        limit = BOARD_LIMITS[board]
        limit = np.where((board == CHINEXT) & (day < self.calendar.position(CHINEXT_WIDENED)), 10, limit)
        free = (day - self.universe.listed_at[stock] < BOARD_FREE_DAYS[board]) | (
            day < self.calendar.position(LIMITS_SINCE)
        )
        return np.where(free, _FREE, limit)

    def turnover(self, stock: Ints, day: Ints) -> Floats:
        """The part of the free float that changes hands on a traded day."""
        return self.turnover_at(stock, self.suspensions.traded_days(stock, day))

    def turnover_at(self, stock: Ints, time: Ints) -> Floats:
        slow = noise.smooth(self.keys["turnover"][stock], time, 30)
        quick = noise.bell(self.keys["volume"][stock], time)
        return 0.012 * noise.exp(1.1 * slow + 0.9 * quick)

    def floating(self, stock: Ints, day: Ints) -> Floats:
        """Tradable shares: a quarter after the listing, more when lock-ups end after one and three years."""
        total = self.actions.shares[stock, self.actions.column(stock, day)]
        age = day - self.universe.listed_at[stock]
        unlocked = 0.25 + 0.3 * (age > 244) + 0.35 * noise.uniform(self.keys["float"][stock], 0) * (age > 732)
        return np.rint(total * unlocked)

    def quotes(self, stock: Ints, day: Ints) -> Quotes:
        close = self.close(stock, day)
        pre_close = self.pre_close(stock, day, close)
        limit = self.limit_percent(stock, day)
        ceiling = (pre_close * (100 + limit) + 50) // 100
        floor = np.where(limit == _FREE, 1, (pre_close * (100 - limit) + 50) // 100)
        to_open, to_high, to_low, to_average = noise.quarters(self.keys["day"][stock], day)
        jump = pre_close * 0.01 * (to_average - 0.5)
        opened = np.rint(pre_close + (close - pre_close) * to_open + jump)
        opened = np.clip(opened.astype(np.int64), floor, ceiling)
        top, bottom = np.maximum(opened, close), np.minimum(opened, close)
        high = np.minimum(np.rint(top * (1.0 + 0.03 * to_high * to_high)).astype(np.int64), ceiling)
        low = np.maximum(np.rint(bottom * (1.0 - 0.03 * to_low * to_low)).astype(np.int64), floor)
        shares = np.rint(self.floating(stock, day) * self.turnover(stock, day)).astype(np.int64) + 100_000
        average = low + (high - low) * (0.3 + 0.4 * to_average)
        amount = np.rint(shares * average * 0.01).astype(np.int64)
        return Quotes(opened, high, low, close, pre_close, shares, amount)


_IPO_FREED = date(2023, 2, 17)
"""Until then a first day on a main board ended at most 44 percent above the issue price."""

BOARD_LIMITS = np.array([board.limit_percent for board in BOARDS])
BOARD_FREE_DAYS = np.array([board.free_days for board in BOARDS])


def build(
    calendar: Calendar, universe: Universe, suspensions: Suspensions, actions: Actions, seed: int
) -> Prices:
    stocks = np.arange(len(universe))
    streams = ["close", "pop", "turnover", "volume", "float", "day"]
    streams += [f"octave-{spacing}" for spacing, _ in _OCTAVES]
    keys = {name: noise.keys(seed, name, stocks) for name in streams}
    keys["market"] = noise.keys(seed, "market", 0)
    u = noise.uniform(noise.keys(seed, "base", stocks), 0)
    # From 6 to some 180 CNY, most near 15.
    base = 6.0 * noise.exp(1.4 * u + 2.0 * u * u * u * u * u)
    return Prices(calendar, universe, suspensions, actions, base, keys)


def is_listed(universe: Universe, stock: Ints, day: Ints) -> Flags:
    return np.logical_and(universe.listed_at[stock] <= day, day < universe.delisted_at[stock])

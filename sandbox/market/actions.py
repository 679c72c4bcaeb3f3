"""Dividends and splits: one possible ex-date per stock and year, hence adj_factor and share capital.

`adj_factor` starts at 1 on the listing day and is multiplied by (1 + split) / (1 - yield) on each
ex-date. Values are kept as published, four decimals, so a product has our numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from sandbox.market import noise
from sandbox.market.calendar import LAST_YEAR, Calendar
from sandbox.market.noise import Floats, Ints
from sandbox.market.suspensions import Suspensions
from sandbox.market.universe import Universe

FIRST_YEAR = 1989
"""Two years before the market, so that every day has a year before it to look at."""

_SPLITS = np.array([0.1, 0.2, 0.3, 0.3, 0.4, 0.5, 0.8, 1.0])
_QUIET_DAYS = 60


@dataclass(frozen=True)
class Actions:
    """Per stock and year (column 0 is FIRST_YEAR)."""

    ex_day: Ints
    ex_time: Ints
    """The ex-date in the stock's own time, see Suspensions.traded_days."""

    factor: Floats
    """adj_factor from this year's ex-date on."""

    shares: Floats
    """Total shares from this year's ex-date on, a whole number."""

    cash_yield: Floats
    """Cash of this year's dividend as a part of the price before it; 0 where there was none."""

    years: Ints

    def column(self, stock: Ints, day: Ints) -> Ints:
        """The year whose ex-date is the last one not after `day`."""
        column = self.years[day] - FIRST_YEAR
        return column - (day < self.ex_day[stock, column])

    def trend(self, stock: Ints, column: Ints, time: Ints) -> Floats:
        """The smooth curve through the adj_factors: where the back-adjusted price is heading.

        A price that follows it rises by what the next ex-date will take away, so raw prices stay in
        a sensible range for decades while adjusted ones never jump.
        """
        t0 = self.ex_time[stock, column]
        span = np.maximum(self.ex_time[stock, column + 1] - t0, 1)
        f0 = self.factor[stock, column]
        curve: Floats = f0 + (self.factor[stock, column + 1] - f0) * ((time - t0) / span)
        return curve


def build(calendar: Calendar, universe: Universe, suspensions: Suspensions, seed: int) -> Actions:
    stocks = np.arange(len(universe))
    years = np.arange(FIRST_YEAR, LAST_YEAR + 2)
    draws = {
        name: noise.uniform(noise.keys(seed, f"action-{name}", stocks)[:, None], years[None, :])
        for name in ("day", "pays", "yield", "splits", "split")
    }
    ex_day = _ex_days(calendar, years, draws["day"])
    eligible = ex_day > universe.listed_at[:, None] + _QUIET_DAYS
    pays = eligible & (draws["pays"] < 0.72)
    cash = np.where(pays, np.rint((0.002 + 0.04 * draws["yield"] * draws["yield"]) * 1e4) / 1e4, 0.0)
    split_chance = np.where(years < 2017, 0.25, 0.08)[None, :]
    split = np.where(
        eligible & (draws["splits"] < split_chance),
        _SPLITS[(draws["split"] * len(_SPLITS)).astype(np.int64)],
        0.0,
    )
    factor, shares = _accumulate(cash, split, _founding_shares(stocks, seed))
    last = len(calendar.days) - 1
    inside = np.clip(ex_day, 0, last)
    # Outside the calendar a stock's time runs on day by day.
    ex_time = suspensions.traded_days(stocks[:, None], inside) + (ex_day - inside)
    return Actions(
        # A day's values lie side by side: most questions are about one day and all stocks.
        ex_day=np.asfortranarray(ex_day),
        ex_time=np.asfortranarray(ex_time),
        factor=np.asfortranarray(factor),
        shares=np.asfortranarray(shares),
        cash_yield=np.asfortranarray(cash),
        years=calendar.years,
    )


def _ex_days(calendar: Calendar, years: Ints, draw: Floats) -> Ints:
    """Ex-dates fall between May and July; years without a market get days outside the calendar."""
    first, width = [], []
    for year in years.tolist():
        if calendar.years[0] < year <= LAST_YEAR:
            start = calendar.position(date(year, 5, 6))
            first.append(start)
            width.append(calendar.position(date(year, 7, 25)) - start)
        else:
            first.append(
                -250 * (1 + int(calendar.years[0]) - year) if year <= 1990 else len(calendar.days) + 80
            )
            width.append(1)
    days: Ints = np.array(first)[None, :] + (draw * np.array(width)[None, :]).astype(np.int64)
    return days


def _accumulate(cash: Floats, split: Floats, shares: Floats) -> tuple[Floats, Floats]:
    factors, capitals = [], []
    factor = np.ones(len(shares))
    for column in range(cash.shape[1]):
        factor = np.rint(factor * (1.0 + split[:, column]) / (1.0 - cash[:, column]) * 1e4) / 1e4
        shares = np.rint(shares * (1.0 + split[:, column]))
        factors.append(factor)
        capitals.append(shares)
    return np.stack(factors, axis=1), np.stack(capitals, axis=1)


def _founding_shares(stocks: Ints, seed: int) -> Floats:
    """From 40 million to some 30 billion shares, most below a billion."""
    u = noise.uniform(noise.keys(seed, "shares", stocks), 0)
    v = noise.uniform(noise.keys(seed, "shares", stocks), 1)
    return np.rint(4e5 * noise.exp(2.6 * u + 4.0 * v * v * v * v)) * 100.0

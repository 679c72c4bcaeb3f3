"""Who bought and sold: the figures of `moneyflow`, which add up to the day's volume and amount.

Orders come in four sizes. Volumes are in lots, amounts in ten thousand CNY.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sandbox.market import noise
from sandbox.market.noise import Floats, Ints, Keys
from sandbox.market.prices import Prices, Quotes
from sandbox.market.valuation import rounded

SIZES = ("sm", "md", "lg", "elg")
_WEIGHTS = (0.42, 0.30, 0.19, 0.09)


@dataclass(frozen=True)
class Flows:
    keys: dict[str, Keys]

    def columns(self, stock: Ints, day: Ints, quotes: Quotes) -> dict[str, np.ndarray]:
        lots, amount = quotes.shares // 100, quotes.amount / 1e4
        columns: dict[str, np.ndarray] = {}
        parts = {side: self._parts(side, stock, day) for side in ("buy", "sell")}
        for number, size in enumerate(SIZES):
            for side in ("buy", "sell"):
                volume = _part(lots, parts[side], number)
                columns[f"{side}_{size}_vol"] = volume
                columns[f"{side}_{size}_amount"] = rounded(amount * (volume / lots), 2)
        net = sum(columns[f"buy_{size}_vol"] - columns[f"sell_{size}_vol"] for size in ("lg", "elg"))
        columns["net_mf_vol"] = np.asarray(net)
        columns["net_mf_amount"] = rounded(amount * (net / lots), 2)
        return columns

    def _parts(self, side: str, stock: Ints, day: Ints) -> list[Floats]:
        """Cumulative shares of the order sizes, ending with 1."""
        raw = [
            w * (0.4 + noise.uniform(self.keys[f"{side}-{s}"][stock], day))
            for s, w in zip(SIZES, _WEIGHTS, strict=True)
        ]
        total = raw[0] + raw[1] + raw[2] + raw[3]
        first = raw[0] / total
        second = first + raw[1] / total
        third = second + raw[2] / total
        return [first, second, third, np.ones_like(first)]


def _part(lots: Ints, cumulative: list[Floats], number: int) -> Ints:
    """Whole lots of one size; the sizes add up to `lots` because cumulative ends are rounded, not parts."""
    upper = np.rint(lots * cumulative[number]).astype(np.int64)
    if number == 0:
        return upper
    return upper - np.rint(lots * cumulative[number - 1]).astype(np.int64)


def build(prices: Prices, seed: int) -> Flows:
    stocks = np.arange(len(prices.universe))
    streams = [f"{side}-{size}" for side in ("buy", "sell") for size in SIZES]
    return Flows({name: noise.keys(seed, name, stocks) for name in streams})

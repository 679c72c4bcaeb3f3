"""When a stock does not trade: spells of days to months, and hours within a day.

Time is cut into slots of `SLOT` trading days; a slot holds at most one spell, strictly inside it, so
whether a stock trades, when it last traded and how many days it has lost are all one lookup.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from sandbox.market import noise
from sandbox.market.calendar import Calendar
from sandbox.market.noise import Flags, Ints, Keys
from sandbox.market.universe import Universe

SLOT = 256
_MARGIN = 4
_REFORMED = date(2016, 6, 1)
"""Before, companies stopped trading often and for months; since then seldom and briefly."""

_SLOT_CHANCE = (0.55, 0.16)
_MEAN_DAYS = (24.0, 9.0)
_LONGEST = SLOT // 2
TIMINGS = ("09:30-10:00", "09:30-11:30", "13:00-15:00", "14:55-15:00", "10:15-10:45")
_TIMING_CHANCE = 0.0008


@dataclass(frozen=True)
class Suspensions:
    """`start` and `end` per stock and slot (half open; equal where there is no spell)."""

    start: Ints
    end: Ints
    lost: Ints
    """Suspended days of all earlier slots."""

    timing_keys: Keys

    def suspended(self, stock: Ints, day: Ints) -> Flags:
        slot = day // SLOT
        inside: Flags = np.logical_and(self.start[stock, slot] <= day, day < self.end[stock, slot])
        return inside

    def previous_traded(self, stock: Ints, day: Ints) -> Ints:
        """The last day before `day` on which the stock was not suspended."""
        before = day - 1
        slot = before // SLOT
        inside = (self.start[stock, slot] <= before) & (before < self.end[stock, slot])
        return np.where(inside, self.start[stock, slot] - 1, before)

    def traded_days(self, stock: Ints, day: Ints) -> Ints:
        """The stock's own time: it stands still during a spell, so prices resume where they stopped."""
        slot = day // SLOT
        start = self.start[stock, slot]
        here = np.clip(day, start, self.end[stock, slot]) - start
        return np.asarray(day - self.lost[stock, slot] - here)

    def resumes(self, stock: Ints, day: Ints) -> Flags:
        """Whether `day` is the first day after a spell."""
        slot = day // SLOT
        first: Flags = np.logical_and(self.end[stock, slot] == day, self.start[stock, slot] < day)
        return first

    def timing(self, stock: Ints, day: Ints) -> Ints:
        """The position in TIMINGS of a halt of some hours, -1 where there is none."""
        draw = noise.uniform(self.timing_keys[stock], day)
        return np.where(draw < _TIMING_CHANCE, (draw * (len(TIMINGS) / _TIMING_CHANCE)).astype(np.int64), -1)


def build(calendar: Calendar, universe: Universe, seed: int) -> Suspensions:
    stocks = np.arange(len(universe))
    slots = len(calendar.days) // SLOT + 1
    position = np.arange(slots)[None, :]
    chance, mean, when = (
        noise.uniform(noise.keys(seed, f"spell-{name}", stocks)[:, None], position)
        for name in ("chance", "length", "start")
    )
    late = (position * SLOT >= calendar.position(_REFORMED)).astype(np.int64)
    # 1/u - 1 has a heavy tail: most spells last days, some last months.
    tail = 0.35 * (1.0 / (mean + 0.02) - 0.98)
    length = np.minimum(1 + (np.array(_MEAN_DAYS)[late] * tail).astype(np.int64), _LONGEST)
    room = SLOT - 2 * _MARGIN - length
    start = position * SLOT + _MARGIN + (when * room).astype(np.int64)
    # A stock that enters the market trades on its first days.
    entering = (start <= universe.listed_at[:, None] + 20) & (start + length >= universe.listed_at[:, None])
    wanted = (chance < np.array(_SLOT_CHANCE)[late]) & ~entering
    length = np.where(wanted, length, 0)
    lost = np.cumsum(length, axis=1) - length
    return Suspensions(
        start=np.asfortranarray(start),
        end=np.asfortranarray(start + length),
        lost=np.asfortranarray(lost),
        timing_keys=noise.keys(seed, "timing", stocks),
    )

"""Which stocks exist, on which board, from which day to which: numbers per board and year follow history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from sandbox.market import noise
from sandbox.market.calendar import LAST_YEAR, Calendar

NEVER = np.int32(2**30)
"""The delisting index of a stock that stays."""


@dataclass(frozen=True)
class Board:
    """A board: who lists there, which codes it gives out, how far a price may move in a day."""

    name: str
    exchange: str
    suffix: str
    code_ranges: tuple[tuple[int, int], ...]
    limit_percent: int
    free_days: int
    first_day: date
    listings: tuple[int, ...]
    """New stocks per year from the first day's year; the last number goes on for ever."""

    @property
    def first_year(self) -> int:
        return self.first_day.year


# fmt: off
_SH_MAIN = (
    8, 0, 22, 72, 68, 15, 103, 82, 54, 46, 87, 78, 70, 67, 61, 3, 14, 25, 5, 9, 28, 39, 25, 1, 43, 89, 103,
    214, 57, 54, 90, 88, 31, 36, 17, 22, 20,
)
_SZ_MAIN = (
    6, 18, 52, 42, 8, 100, 124, 52, 52, 48, 0, 0, 0, 38, 12, 52, 100, 71, 54, 204, 115, 55, 0, 31, 44, 46,
    82, 20, 26, 54, 34, 40, 23, 10, 12, 10,
)
_CHINEXT = (36, 117, 128, 74, 0, 51, 86, 78, 141, 29, 52, 107, 194, 145, 105, 38, 33, 30)
_STAR = (70, 145, 160, 120, 65, 15, 19, 20)
_BEIJING = (82, 80, 72, 23, 26, 25)
# fmt: on

_SH_CODES = ((600000, 601000), (601000, 602000), (603000, 604000))
_SZ_CODES = ((1, 1000), (2001, 3000), (1201, 1400))
_CHINEXT_CODES = ((300001, 301000), (301001, 302000))

BOARDS = (
    Board("主板", "SSE", "SH", _SH_CODES, 10, 1, date(1990, 12, 19), _SH_MAIN),
    Board("主板", "SZSE", "SZ", _SZ_CODES, 10, 1, date(1991, 7, 3), _SZ_MAIN),
    Board("创业板", "SZSE", "SZ", _CHINEXT_CODES, 20, 5, date(2009, 10, 30), _CHINEXT),
    Board("科创板", "SSE", "SH", ((688001, 689000),), 20, 5, date(2019, 7, 22), _STAR),
    Board("北交所", "BSE", "BJ", ((920001, 921000),), 30, 1, date(2021, 11, 15), _BEIJING),
)

CHINEXT = 2
CHINEXT_WIDENED = date(2020, 8, 24)
"""Until then the board called 创业板 had the main boards' limit of ten percent."""

LIMITS_SINCE = date(1996, 12, 16)

_DELISTINGS = {
    **dict.fromkeys(range(1999, 2019), 7),
    2019: 12,
    2020: 18,
    2021: 22,
    2022: 46,
    2023: 46,
    2024: 52,
}
_DELISTINGS_LATER = 36
_MIN_LIFE = 500
"""Trading days a stock lives at least before it may be delisted."""


@dataclass(frozen=True)
class Universe:
    """All stocks there will ever be, ordered by ts_code; a stock's position is its identity."""

    codes: NDArray[np.str_]
    boards: NDArray[np.int8]
    listed_at: NDArray[np.int32]
    delisted_at: NDArray[np.int32]
    """First trading day on which the stock is gone; NEVER if it stays."""

    def __len__(self) -> int:
        return len(self.codes)

    def listed(self, day: int) -> NDArray[np.int64]:
        """The stocks listed on trading day `day`."""
        return np.flatnonzero((self.listed_at <= day) & (day < self.delisted_at))


def build(calendar: Calendar, seed: int) -> Universe:
    codes: list[str] = []
    boards: list[int] = []
    days: list[int] = []
    for number, board in enumerate(BOARDS):
        listing_days = _listing_days(calendar, board, number, seed)
        codes += [f"{code:06d}.{board.suffix}" for code in _codes(board, len(listing_days))]
        boards += [number] * len(listing_days)
        days += listing_days
    order = np.argsort(np.array(codes))
    listed_at = np.array(days, dtype=np.int32)[order]
    return Universe(
        codes=np.array(codes)[order],
        boards=np.array(boards, dtype=np.int8)[order],
        listed_at=listed_at,
        delisted_at=_delisting_days(calendar, listed_at, seed),
    )


def _codes(board: Board, count: int) -> list[int]:
    every = [code for low, high in board.code_ranges for code in range(low, high)]
    if count > len(every):
        raise ValueError(f"board {board.name} ({board.exchange}) has {len(every)} codes for {count} stocks")
    return every[:count]


def _listing_days(calendar: Calendar, board: Board, number: int, seed: int) -> list[int]:
    """Indices of the listing days of a board's stocks, ascending."""
    opening = calendar.position(board.first_day)
    days: list[int] = []
    for year in range(board.first_year, LAST_YEAR + 1):
        count = board.listings[min(year - board.first_year, len(board.listings) - 1)]
        first, end = calendar.year_span(year)
        first = max(first, opening)
        draws = noise.uniform(noise.keys(seed, f"listing-{number}-{year}", 0), np.arange(count))
        picked = np.sort((first + draws * (end - first)).astype(np.int64))
        if year == board.first_year:
            # A board opens with a crowd: a third of the first year's stocks start on the first day.
            picked[: max(min(8, count), count // 3)] = opening
        days += picked.tolist()
    return days


def _delisting_days(calendar: Calendar, listed_at: NDArray[np.int32], seed: int) -> NDArray[np.int32]:
    delisted_at = np.full(len(listed_at), NEVER, dtype=np.int32)
    identity = np.arange(len(listed_at))
    for year in range(1999, LAST_YEAR + 1):
        first, end = calendar.year_span(year)
        draw = noise.uniform(noise.keys(seed, "delisting", identity), year)
        draw[(delisted_at != NEVER) | (listed_at + _MIN_LIFE > first)] = 2.0
        chosen = np.argsort(draw, kind="stable")[: _DELISTINGS.get(year, _DELISTINGS_LATER)]
        chosen = chosen[draw[chosen] < 1.0]
        when = noise.uniform(noise.keys(seed, "delisting-day", chosen), year)
        delisted_at[chosen] = (first + when * (end - first)).astype(np.int32)
    return delisted_at

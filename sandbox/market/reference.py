"""The two tables that are not by trading day: the calendar and the stock list, as of a given day."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np

from sandbox.market.calendar import LAST_YEAR, OPENED
from sandbox.market.market import Columns, Market
from sandbox.market.universe import BOARDS, NEVER

ANNOUNCED_MONTH = 12
"""The exchanges announce next year's closed days in December at the latest."""

UPCOMING_DAYS = 10
"""How many trading days before its listing a stock is known (list status G)."""

_BOARD_NAMES = np.array([board.name for board in BOARDS], dtype=object)
_EXCHANGES = np.array([board.exchange for board in BOARDS], dtype=object)


def announced_until(today: date) -> date:
    """The last day of the calendar everybody knows."""
    return date(min(today.year + (today.month >= ANNOUNCED_MONTH), LAST_YEAR), 12, 31)


def trade_cal(market: Market, exchange: str, start: date, end: date) -> Columns:
    """Every calendar day of an exchange from `start` to `end`, newest first."""
    opened = OPENED[exchange]
    start = max(start, opened)
    if start > end:
        empty = np.array([], dtype=object)
        return {
            "exchange": empty,
            "cal_date": empty,
            "is_open": np.array([], dtype=np.int64),
            "pretrade_date": empty,
        }
    days = np.arange(np.datetime64(start, "D"), np.datetime64(end, "D") + 1)[::-1]
    at = np.searchsorted(market.calendar.days, days)
    is_open = market.calendar.days[np.minimum(at, len(market.calendar.days) - 1)] == days
    texts = np.array([*market.calendar.texts, None], dtype=object)
    # The first trading day of an exchange has none before it.
    before = np.where(at - 1 >= market.calendar.position(opened), at - 1, len(texts) - 1)
    return {
        "exchange": np.full(len(days), exchange, dtype=object),
        "cal_date": np.array(
            [text.replace("-", "") for text in np.datetime_as_string(days).tolist()], dtype=object
        ),
        "is_open": is_open.astype(np.int64),
        "pretrade_date": texts[before],
    }


def stock_basic(market: Market, today: date) -> Columns:
    """Every stock known on `today`, with its list status of that day."""
    universe, calendar = market.universe, market.calendar
    day = calendar.position(today + timedelta(days=1)) - 1
    known = np.flatnonzero(universe.listed_at <= day + UPCOMING_DAYS)
    gone = universe.delisted_at[known] <= day
    coming = universe.listed_at[known] > day
    status = np.where(gone, "D", np.where(coming, "G", "L")).astype(object)
    texts = np.array([*calendar.texts, None], dtype=object)
    none = len(texts) - 1
    codes = universe.codes[known].tolist()
    firms = [market.companies[n] for n in known.tolist()]
    names = [f.name + "(退)" if left else f.name for f, left in zip(firms, gone.tolist(), strict=True)]
    board = universe.boards[known]
    delisted_at = np.where(universe.delisted_at[known] == NEVER, none, universe.delisted_at[known])
    return {
        "ts_code": _objects(codes),
        "symbol": _objects([code[:6] for code in codes]),
        "name": _objects(names),
        "area": _objects([f.area for f in firms]),
        "industry": _objects([f.industry for f in firms]),
        "fullname": _objects([f.fullname for f in firms]),
        "enname": _objects([f.enname for f in firms]),
        "cnspell": _objects([f.cnspell for f in firms]),
        "market": _BOARD_NAMES[board],
        "exchange": _EXCHANGES[board],
        "curr_type": np.full(len(known), "CNY", dtype=object),
        "list_status": status,
        "list_date": texts[np.where(coming, none, universe.listed_at[known])],
        "delist_date": texts[np.where(gone, delisted_at, none)],
        "is_hs": _objects([f.connect for f in firms]),
        "act_name": _objects([f.owner for f in firms]),
        "act_ent_type": _objects([f.ownership for f in firms]),
    }


def _objects(values: list[str | None] | list[str]) -> np.ndarray:
    return np.array(values, dtype=object)

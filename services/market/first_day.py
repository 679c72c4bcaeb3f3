"""The first day of a home's market, kept in a file of the home.

Dagster's partitions begin on this day, and it must be the same in every process: definitions are loaded
without asking a database, and a first day that moved with the calendar would be another definition each day.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from domain.market.trading import shanghai
from domain.shared.clock import machine_clock
from domain.shared.error import InvalidInput

FILE = "market_start"
EXCHANGE_OPENED = date(1990, 12, 19)
"""What a home begins with that was filled before homes kept a first day."""
YEARS_BEFORE = 2


def first_day(settings: Mapping[str, Any]) -> date:
    """The day that the home keeps; of a new home the first of the month two years before today."""
    if kept := kept_day(settings["home"]):
        return kept
    today = shanghai(settings["now"] or machine_clock()).date()
    return date(today.year - YEARS_BEFORE, today.month, 1)


def keep_first_day(home: Path, wanted: date, *, given: bool, new: bool) -> date:
    """Keep the day that was given, else the one that is kept; return it. `new`: nothing was filled yet."""
    kept = kept_day(home)
    day = wanted if given or (kept is None and new) else kept or EXCHANGE_OPENED
    if day != kept:
        home.mkdir(parents=True, exist_ok=True)
        written = home / f".{FILE}.{day}"
        written.write_text(f"{day}\n", encoding="utf-8")
        written.replace(home / FILE)
    return day


def kept_day(home: Path) -> date | None:
    """The day that the home keeps, if it keeps one."""
    file = home / FILE
    try:
        return date.fromisoformat(file.read_text(encoding="utf-8").strip())
    except OSError:
        return None  # a home that cannot be read is reported by whatever needs it
    except ValueError as error:
        raise InvalidInput(
            f"{file} holds no day: {error}", remedy="write a day such as 2015-01-01 into it, or remove it"
        ) from error

"""Writes `holidays.json`: where Shanghai departed from Monday to Friday, by exchange_calendars.

    python -m sandbox.market.holidays

A packaged file, because importing that package costs more than the whole start of the sandbox. A test
compares the two. Nothing but this script and that test needs the package.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("holidays.json")
FIRST_DAY = "1990-12-19"


def from_package() -> dict[str, Any]:
    """What the package knows: the last recorded day and every exception up to it."""
    import exchange_calendars
    import pandas as pd

    calendar = exchange_calendars.get_calendar("XSHG", start=FIRST_DAY)
    last = pd.Timestamp(year=calendar.last_session.year, month=12, day=31)
    weekdays = pd.bdate_range(FIRST_DAY, last)
    return {
        "calendar": "XSHG",
        "first": FIRST_DAY,
        "last": last.strftime("%Y-%m-%d"),
        "closed_weekdays": _texts(weekdays.difference(calendar.sessions)),
        "open_weekends": _texts(calendar.sessions.difference(weekdays)),
    }


def _texts(days: Any) -> list[str]:
    return [day.strftime("%Y-%m-%d") for day in days]


def main() -> None:
    FILE.write_text(json.dumps(from_package(), indent=0) + "\n")


if __name__ == "__main__":
    main()

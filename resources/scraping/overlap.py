"""Times as a source writes them: earlier ones in the same form, and which cannot be."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, timedelta
from typing import Any

from resources.scraping.fields import MILLISECONDS, parse_time

_A_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_A_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:")
_SECONDS = re.compile(r"\d{9,13}")
AHEAD = timedelta(days=1)
"""How far a clock of a source, or a zone that it does not write, may be ahead."""


def earlier(text: str, hours: float) -> str:
    """Return the time so many hours before, in the form it has; what is no time is returned as it is."""
    try:
        if _A_DAY.fullmatch(text):
            return (date.fromisoformat(text) - timedelta(days=math.ceil(hours / 24))).isoformat()
        if _SECONDS.fullmatch(text):
            seconds = int(hours * 3600)
            return str(int(text) - (1000 * seconds if int(text) >= MILLISECONDS else seconds))
        if not _A_MOMENT.match(text):
            return text
        found = datetime.fromisoformat(text) - timedelta(hours=hours)
    except (ValueError, OverflowError):
        return text
    fraction = re.search(r"[.,](\d+)", text)
    precision = "seconds" if fraction is None else "milliseconds" if len(fraction[1]) <= 3 else "microseconds"
    written = found.isoformat(sep=text[10], timespec=precision)
    return written.removesuffix("+00:00") + "Z" if text.endswith("Z") else written


def is_ahead(value: Any, now: datetime) -> bool:
    """Whether it is a time that lies in the future: as a cursor it would hide whatever changes until then."""
    found = parse_time(value)
    return found is not None and found > now + AHEAD

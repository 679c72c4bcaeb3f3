"""Reading a reference out of an item of JSON or a row of a file, by the options of its source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from resources.scraping.checks import content_bytes, parse_id
from resources.scraping.options import Fields
from resources.scraping.reference import ScrapedReference

MILLISECONDS = 1e11
"""A number of seconds as large as this is in the year 5138: it counts milliseconds."""


def parse_reference(item: Any, fields: Fields) -> ScrapedReference:
    """Return the reference; what cannot be one is a ValueError that names the field."""
    if not isinstance(item, Mapping):
        raise ValueError("a reference is no object")
    reference_id = parse_id(lookup(item, fields.id), fields.id)
    try:
        content_bytes(item)
    except ValueError as error:
        raise ValueError(f"the reference {reference_id} {error}") from None
    title, link = lookup(item, fields.title), lookup(item, fields.link)
    return ScrapedReference(
        id=reference_id,
        title="" if title is None else str(title),
        url=None if link in (None, "") else str(link),
        published_at=parse_time(lookup(item, fields.published)),
        payload=item,
    )


def lookup(item: Any, path: str) -> Any:
    """Return what a path with dots leads to, None if there is nothing."""
    for step in path.split(".") if path else ():
        if not isinstance(item, Mapping):
            return None
        item = item.get(step)
    return item


def parse_time(value: Any) -> datetime | None:
    """Return a time from ISO 8601, RFC 822 or Unix seconds, None if it is none. Without a zone it is UTC."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        found = _unix(value) if isinstance(value, int | float) else _written(value.strip())
    except (ValueError, OverflowError, OSError):
        return None
    if found is None:
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _unix(value: float) -> datetime | None:
    if not math.isfinite(value):
        return None
    return datetime.fromtimestamp(value / 1000 if abs(value) >= MILLISECONDS else value, UTC)


def _written(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return parsedate_to_datetime(text)

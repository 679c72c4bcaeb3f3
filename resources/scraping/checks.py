"""What a reference must be, whichever scraper gives it: an id that can be a key, content that can be kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

LONGEST_ID = 2_000
"""Bytes: Postgres indexes no more than 2,704."""


def parse_id(value: Any, name: str) -> str:
    """Return an id as text. An id of an address or a DOI may be long, and hold any mark that can be seen."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"a reference has no id in {name}")
    text = str(value).strip()
    size = len(text.encode("utf-8", "replace"))
    if not 0 < size <= LONGEST_ID or not text.isprintable() or "\ufffd" in text:
        raise ValueError(
            f"{name} of a reference is {text[:40]!r}: 1 to {LONGEST_ID:,} bytes of what can be seen"
        )
    return text


def content_bytes(payload: Any) -> bytes:
    """Return the same bytes for the same payload; what cannot be kept as JSON is a ValueError."""
    if not isinstance(payload, Mapping):
        raise ValueError("is no object")
    try:
        return orjson.dumps(payload, default=str, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:  # nested too deeply, numbers of more than 64 bits, keys that are no text
        raise ValueError(f"cannot be kept: {error}") from None

"""Stable digests of small values: fingerprints of work, settings, inputs."""

from __future__ import annotations

import hashlib
import json
from datetime import date, time
from decimal import Decimal
from typing import Any


def _plain(value: Any) -> str:
    """Dates and the like. A set has no order two processes would agree on."""
    if isinstance(value, date | time | Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no stable digest")


def digest(value: Any) -> str:
    """A short digest of a JSON-like value; key order does not matter."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:16]

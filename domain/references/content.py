"""The canonical form of a reference's content: what survives reformatting has the same hash."""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def canonical(value: Any) -> Any:
    """Return a JSON value with texts in NFC and whole numbers as integers."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return {
            _text(str(key)): canonical(of) for key, of in sorted(value.items(), key=lambda kv: str(kv[0]))
        }
    if isinstance(value, list | tuple):
        return [canonical(one) for one in value]
    if isinstance(value, datetime):
        return moment(value)
    return value


def canonical_json(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces."""
    return json.dumps(
        canonical(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
    )


def payload_hash(
    title: str | None, url: str | None, published_at: datetime | None, payload: Mapping[str, Any]
) -> str:
    """Return the hash of a reference's content."""
    shown = None if published_at is None else moment(published_at)
    content = {"title": title, "url": url, "published_at": shown, "payload": payload}
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def moment(at: datetime) -> str:
    """Return a moment in UTC; without a zone it is taken as UTC."""
    return (at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)).isoformat()


def _text(text: str) -> str:
    # Half a surrogate pair, which JSON may escape, is no UTF-8: neither hash nor table could hold it.
    return unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode())


def _number(number: float) -> float | int | None:
    if not math.isfinite(number):
        return None  # JSON has no such number
    return int(number) if number.is_integer() else number

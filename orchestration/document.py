"""Values as JSON documents: what commands print with `--json`, and the HTTP API answers."""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from typing import Any


def as_document(value: Any) -> str:
    """Return a value as a JSON document, indented."""
    return json.dumps(_finite(value), ensure_ascii=False, indent=2, default=_plain)


def _finite(value: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have, by null."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value)

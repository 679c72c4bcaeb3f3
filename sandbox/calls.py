"""What was asked of the sandbox: counters and the latest calls, without tokens."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

_REMEMBERED = 500
_TEXT = 200


@dataclass(frozen=True)
class Call:
    """`code` is None where no JSON answer was sent."""

    at: str
    api: str
    params: Mapping[str, str]
    status: int
    code: int | None
    rows: int
    faults: tuple[str, ...]
    milliseconds: float


class Calls:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recent: deque[Call] = deque(maxlen=_REMEMBERED)
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, call: Call) -> None:
        with self._lock:
            self._recent.append(call)
            self._counts[call.api, "calls"] += 1
            self._counts[call.api, "rows"] += call.rows
            self._counts[call.api, "refused"] += call.code not in (0, None)
            self._counts[call.api, "faulted"] += bool(call.faults)

    def clear(self) -> None:
        with self._lock:
            self._recent.clear()
            self._counts.clear()

    def recent(self, api: str | None = None) -> list[Call]:
        """The latest calls, oldest first."""
        with self._lock:
            return [call for call in self._recent if api in (None, call.api)]

    def count(self, api: str | None = None) -> int:
        with self._lock:
            return sum(
                n for (name, what), n in self._counts.items() if what == "calls" and api in (None, name)
            )

    def to_json(self, api: str | None = None) -> dict[str, Any]:
        with self._lock:
            names = sorted({name for name, _ in self._counts if api in (None, name)})
            words = ("calls", "rows", "refused", "faulted")
            counters = {name: {word: self._counts[name, word] for word in words} for name in names}
        return {"counters": counters, "recent": [asdict(call) for call in self.recent(api)]}


def shown(params: Mapping[str, Any]) -> dict[str, str]:
    """Parameters fit to keep: only short texts, and nothing that looks like a secret."""
    return {
        str(name)[:_TEXT]: str(value)[:_TEXT]
        for name, value in list(params.items())[:20]
        if "token" not in str(name).lower()
    }

"""One partition as a look sees it: what the lake holds, beside what we know of having put it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from domain.shared.table import ABSENT, Version


@dataclass(frozen=True)
class Cell:
    version: Version = ABSENT
    recorded: Version | None = None
    seen_count: int = 0
    committed_at: datetime | None = None
    checked_at: datetime | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def untouched(self) -> bool:
        """The lake holds exactly what we recorded."""
        return self.recorded is not None and self.recorded == self.version

    @property
    def last_known(self) -> Version:
        """What it holds; while that cannot be read, what was recorded of it."""
        return self.recorded if self.version.unread and self.recorded is not None else self.version


NOTHING = Cell()


UNREADABLE = "lake_unreadable"
"""The reason code of what cannot be read now. It is no fault that work mends: what is there may be whole."""


def fault(cell: Cell, made: str = "fetched") -> tuple[str, str] | None:
    """What is wrong with a partition whatever its table: (reason code, why). `made`: how rows come there."""
    if cell.version.unread:
        return UNREADABLE, cell.version.unread
    if cell.version.damaged:
        return "damaged", "its data file cannot be read"
    if cell.recorded is None:
        if cell.version == ABSENT:
            return "missing", f"never {made}"
        how = "fetch" if made == "fetched" else "run"
        return "unrecorded", f"{cell.version.rows:,} rows that no {how} of ours recorded"
    if cell.version == ABSENT and cell.recorded != ABSENT:
        return "missing", f"its {cell.recorded.rows:,} rows are gone"
    if cell.version != cell.recorded:
        return "changed", f"content is not what was {made} ({cell.version} instead of {cell.recorded})"
    return None

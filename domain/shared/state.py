"""A partition as observed: its version in the lake and what was recorded of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from domain.shared.table import ABSENT, Version


@dataclass(frozen=True)
class PartitionState:
    version: Version = ABSENT
    recorded: Version | None = None
    seen_count: int = 0
    committed_at: datetime | None = None
    checked_at: datetime | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def untouched(self) -> bool:
        """Whether the lake holds exactly what was recorded."""
        return self.recorded is not None and self.recorded == self.version

    @property
    def last_known(self) -> Version:
        """The version in the lake; while that cannot be read, the recorded one."""
        return self.recorded if self.version.unavailable and self.recorded is not None else self.version


NOTHING = PartitionState()


UNAVAILABLE = "lake_unreadable"
"""The reason code of a partition that cannot be read now. It waits: its content may be intact."""
INPUT_MISSING = "input_missing"
"""The reason code of a partition that waits for another one."""


def waits_for(own: Iterable[PartitionState], sources: Mapping[str, PartitionState]) -> tuple[str, str] | None:
    """The reason code and reason why a partition waits: it, or what it is made from, cannot be read now.

    The one place where plans take notice of an unavailable partition: it is neither healthy nor work, it is
    not overwritten, and nothing is made from it.
    """
    if why := next((state.version.unavailable for state in own if state.version.unavailable), ""):
        return UNAVAILABLE, f"waits: {why}"
    for name, state in sources.items():
        if state.version.unavailable:
            return INPUT_MISSING, f"it waits for {name}: {state.version.unavailable}"
    return None


def fault(state: PartitionState, made: str = "fetched") -> tuple[str, str] | None:
    """What is wrong with a partition whatever its table: (reason code, why). `made`: how rows come there."""
    if state.version.unavailable:
        return UNAVAILABLE, state.version.unavailable
    if state.version.corrupt:
        return "damaged", "its data file cannot be read"
    if state.recorded is None:
        if state.version == ABSENT:
            return "missing", f"never {made}"
        how = "fetch" if made == "fetched" else "run"
        return "unrecorded", f"{state.version.rows:,} rows that no {how} of ours recorded"
    if state.version == ABSENT and state.recorded != ABSENT:
        return "missing", f"its {state.recorded.rows:,} rows are gone"
    if state.version != state.recorded:
        return "changed", f"content is not what was {made} ({state.version} instead of {state.recorded})"
    return None

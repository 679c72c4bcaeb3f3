"""A partition as observed: its version in the lake and what was recorded of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from domain.shared.table import ABSENT, Version

FIGURES = "figures"
PIPELINES = "pipelines"
"""Names in the recorded detail of a partition."""


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
    def pipelines(self) -> tuple[str, ...]:
        return tuple(self.detail.get(PIPELINES, ()))

    @property
    def untouched(self) -> bool:
        """Whether the lake holds exactly what was recorded."""
        return self.recorded is not None and self.recorded == self.version

    @property
    def never_made(self) -> bool:
        """Whether it is neither there nor recorded."""
        return self.recorded is None and self.version == ABSENT

    @property
    def lost(self) -> bool:
        """Whether recorded rows are gone, or cannot be read."""
        gone = self.version == ABSENT and self.recorded not in (None, ABSENT)
        return gone or not self.version.readable

    @property
    def last_known(self) -> Version:
        """The version in the lake; while that cannot be read, the recorded one."""
        return self.recorded if self.version.unavailable and self.recorded is not None else self.version


NOTHING = PartitionState()

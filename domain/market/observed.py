"""What a look sees: the state of the market domain as plain values, input of the plan and of health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, time

from domain.market.trading import TradingCalendar
from domain.shared.state import NOTHING, PartitionState
from domain.shared.table import ALL


@dataclass(frozen=True)
class Rules:
    """The settings that the plan depends on."""

    window_days: int = 7
    limit: int = 3
    daily_at: time = time(18, 30)
    recheck_days: int = 3
    first_day: date = date.min
    """The warehouse's first day: what is older is not ours to fill."""
    configuration: str = ""
    """Digest of what a person changes to mend a permanent failure: source, address, token, points."""


@dataclass(frozen=True)
class Observed:
    calendar: TradingCalendar
    states: Mapping[tuple[str, str], PartitionState]
    """By (table, partition): `("normalized_daily", "2026-11-17")`."""
    expected: Mapping[tuple[str, str], int | None] = field(default_factory=dict)
    pending_revisions: frozenset[date] = frozenset()
    busy_days: frozenset[date] = frozenset()
    """Days with a fill under way: what derives from them is that run's business."""

    def state(self, table: str, partition: str) -> PartitionState:
        return self.states.get((table, partition), NOTHING)

    def source(self, table: str, partition: str) -> PartitionState:
        """Of what a day is derived from: the day's own, or that of a table which is one whole."""
        return self.states.get((table, partition)) or self.state(table, ALL)

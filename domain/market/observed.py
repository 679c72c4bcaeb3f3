"""The observed state of the market as plain values: input of the plan and of the findings."""

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
    """The first day of the warehouse; older days are never filled."""
    heal_history: bool = False
    """Whether days before the window that were never fetched are filled too, between those that were."""
    configuration: str = ""
    """Digest of what a person changes to correct a permanent failure: source, address, token, points."""


@dataclass(frozen=True)
class Observed:
    calendar: TradingCalendar
    states: Mapping[tuple[str, str], PartitionState]
    """By (table, partition): `("normalized_daily", "2026-11-17")`."""
    expected: Mapping[tuple[str, str], int | None] = field(default_factory=dict)
    pending_revisions: frozenset[date] = frozenset()
    busy_days: frozenset[date] = frozenset()
    """Days with a running fill, which also makes what derives from them."""
    older: frozenset[date] = frozenset()
    """Days before the window that are judged too."""
    every: bool = True
    """Whether these are all that need it, and not only what there was time for."""
    holes: Mapping[str, tuple[date, ...]] = field(default_factory=dict)
    """By fetched table, days before the window that were never fetched, after the first that was."""
    earlier: Mapping[str, tuple[date, ...]] = field(default_factory=dict)
    """By fetched table, days before the first that was, of which another table has any."""

    def state(self, table: str, partition: str) -> PartitionState:
        return self.states.get((table, partition), NOTHING)

    def source(self, table: str, partition: str) -> PartitionState:
        """The state of an input: of the day, or of the whole table if it has no days."""
        return self.states.get((table, partition)) or self.state(table, ALL)

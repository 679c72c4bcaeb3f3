"""The years there may be data of."""

from __future__ import annotations

YEARS = range(1990, 2051)
"""Partitions exist for these years only."""

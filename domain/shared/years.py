"""The years there may be data of."""

from __future__ import annotations

YEARS = range(1990, 2051)
"""Partitions are cut by them: what speaks of another year has no place to go."""

"""What the files of a sample institution hold, as values. Rows: `types.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Weights = Mapping[str, float]


@dataclass(frozen=True)
class Amount:
    column: str
    median: float
    spread: float
    least: float
    most: float
    digits: int = 0


@dataclass(frozen=True)
class SampleType:
    rows: int
    amount: Amount
    units: Weights
    counts: Mapping[str, float] = field(default_factory=dict)
    days: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    words: Mapping[str, Weights] = field(default_factory=dict)


@cache
def types() -> Mapping[str, SampleType]:
    """By name."""
    return {
        name: SampleType(**{**row, "amount": Amount(**row["amount"])})
        for name, row in packaged("types").items()
    }


def packaged(name: str) -> Any:
    return yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8"))

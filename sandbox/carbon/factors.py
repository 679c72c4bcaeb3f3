"""The factor file of a sample institution. Rows: `factors.yaml`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from sandbox.carbon.types import packaged

SOURCE = "sample values, not for reporting"
FIRST_YEAR = 2023


def factors(year: int) -> pa.Table:
    """The rows of a year's file."""
    return pa.Table.from_pylist([row for one in packaged("factors") for row in _rows(one, year)])


def _rows(one: Mapping[str, Any], year: int) -> Iterator[dict[str, Any]]:
    if year < one.get("since", FIRST_YEAR):
        return
    trend = one.get("trend", 1) ** (year - FIRST_YEAR)
    for words, value in _leaves(one["values"]):
        yield {
            "year": year,
            "data_entry_type": one["type"],
            "emission_type": one["emission"],
            "classification": json.dumps(dict(zip(one.get("keys", ()), words, strict=True))),
            "value": round(float(value * trend), 6),
            "unit": one["unit"],
            "source": SOURCE,
        }


def _leaves(values: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    if not isinstance(values, dict):
        yield words, values
        return
    for word, inner in values.items():
        yield from _leaves(inner, (*words, word))

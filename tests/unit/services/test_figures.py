"""The figures kept of a partition, to be compared with the next: bounded, and adding up."""

from __future__ import annotations

import pyarrow as pa

from domain.carbon.tables import UNITS
from services.carbon.figures import OTHERS, PARTS, figures


def test_every_part_is_kept_of_a_small_organisation() -> None:
    made = pa.table({"parent_id": [None, "UNI", "UNI", "SCI"]})
    assert figures(UNITS, made).parts == {"SCI": 1, "UNI": 2, "top": 1}


def test_of_a_large_one_the_largest_parts_and_the_sum_of_the_others() -> None:
    made = pa.table({"parent_id": [f"U{n:04}" for n in range(1_000)] + ["BIG"] * 7})
    kept = figures(UNITS, made).parts
    assert len(kept) == PARTS + 1
    assert (kept["BIG"], kept["U0000"], kept[OTHERS]) == (7, 1, 1_000 - PARTS + 1)
    assert sum(kept.values()) == 1_007

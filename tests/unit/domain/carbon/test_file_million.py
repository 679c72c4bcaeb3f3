"""A file of a million rows: read in seconds, in memory of a small machine, and each problem on its line."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import pytest

from domain.shared.tabular.sheet import Parsed
from tests.unit.domain.carbon.files import entries, places

ROWS = 1_000_000
HEADER = "year,entry_id,unit_id,distance,unit,passengers,round_trip,cabin,note"
MOST_MEMORY = 1_200
"""MiB more than before the file was read."""


def row(n: int) -> str:
    return (
        f"2025,e{n},{'AB'[n % 2]},{n % 9000}.5,km,{n % 5 + 1},{'yes' if n % 2 else 'no'},economy,flight {n}"
    )


def memory() -> float:
    """The most that this process ever had, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(what: str, content: bytes, read: Callable[[bytes], Parsed]) -> Parsed:
    """What was read. Time is printed, not judged: the machine may do other work."""
    memory_before, began, worked = memory(), time.perf_counter(), time.process_time()
    parsed = read(content)
    took, work = time.perf_counter() - began, time.process_time() - worked
    print(
        f"{what}: {len(content) / 1e6:.0f} MB, {parsed.rows:,} rows in {took:.1f} s ({work:.1f} s of work); "
        f"this process had {memory():.0f} MiB at most, {memory_before:.0f} before"
    )
    assert memory() - memory_before < MOST_MEMORY
    return parsed


def planes(content: bytes) -> Parsed:
    return entries(content, "plane")


@pytest.mark.slow
def test_a_million_rows_are_read_and_their_problems_found_on_their_lines() -> None:
    rows = [row(n) for n in range(ROWS)]
    rows[0] = rows[0].replace(",A,", ",C,")
    rows[499_999] = '2025,e499999,A,1,km,1,no,economy,"two\nlines"'
    rows[500_000] = ""
    rows[700_000] = "2025,too,short"
    rows[-2] = rows[-2].replace("2025", "2026")
    rows[-1] = rows[-1].replace(",km,", ",x,")
    parsed = measured("CSV", "\n".join([HEADER, *rows]).encode(), planes)
    assert places(parsed.problems) == [
        (2, "unit_id", "unknown_unit_id"),
        (700_003, "", "columns"),
        (1_000_001, "year", "other_year"),
        (1_000_002, "unit", "unknown_unit"),
    ]
    assert (parsed.rows, parsed.bad_rows, parsed.frame.num_rows) == (999_999, 4, 999_995)
    assert parsed.frame.column("line").to_pylist()[499_997:500_000] == [500_000, 500_001, 500_004]

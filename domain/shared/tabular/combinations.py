"""Distinct combinations of columns, each handled once, however many rows have it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Places = npt.NDArray[np.int64]


def distinct(columns: Sequence[pa.Array]) -> tuple[Places, Places]:
    """Of each row the number of its combination, of each combination its first row. Counted as they come."""
    numbers, _ = _numbered(columns[0])
    for column in columns[1:]:
        right, width = _numbered(column)
        # Numbered anew each time: the product of many columns would not fit.
        numbers, _ = _numbered(pa.array(numbers * width + right))
    count = len(numbers)
    firsts = np.empty(int(numbers.max()) + 1 if count else 0, dtype=np.int64)
    firsts[numbers[::-1]] = np.arange(count)[::-1]  # of several the last one stays
    return numbers, firsts


def _numbered(column: pa.Array) -> tuple[Places, int]:
    encoded = column.dictionary_encode()
    return np.asarray(encoded.indices).astype(np.int64), len(encoded.dictionary)

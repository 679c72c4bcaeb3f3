"""The order in which rows are written. Mostly they come in it, or in a few pieces that are: nothing moves.

Sorting ten million rows takes longer than calculating them, so it is found out first whether it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise, takewhile
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from domain.shared.table import Table
from resources.lake.repeats import is_encoded, numbers, one_array, ranks

_RUNS = 64
_PIECES = 4096
"""What comes in more runs, or in more pieces of them, is sorted row by row."""
_Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Laid:
    """Rows as they lie."""

    rows: pa.Table
    in_order: bool
    distinct: bool
    """The order alone shows that no two rows have the same key: each row comes after the last."""


def laid(table: Table, frame: pa.Table) -> Laid:
    """The rows in order if they came in it, or in a few pieces that only have to change places; else as they
    came.

    A query of several threads answers in such pieces: each thread's rows are in order, and they took turns.
    """
    found = _steps(frame, table.sort_order)
    if found is not None and 0 < len(found[0]) <= _RUNS:
        pieces = _turns(table, frame, found[0])
        if len(pieces) <= _PIECES:
            moved = pa.concat_tables([frame.slice(start, end - start) for start, end in pieces])
            again = _steps(moved, table.sort_order)
            if again is not None and not len(again[0]):
                frame, found = moved, again
    if found is None or len(found[0]):
        return Laid(frame, in_order=False, distinct=False)
    return Laid(frame, in_order=True, distinct=not found[1] and set(table.sort_order) <= set(table.key))


def _turns(table: Table, frame: pa.Table, steps: _Places) -> list[tuple[int, int]]:
    """The pieces, from and to, in the order of all: by partition, as within one a single column leads."""
    before = list(takewhile(lambda name: name in table.partition_columns, table.sort_order))
    lead = _comparable(frame.column(table.sort_order[min(len(before), len(table.sort_order) - 1)]))
    if lead is None or not len(lead):
        return [(0, frame.num_rows)]
    prefix = [v for v in (_comparable(frame.column(name)) for name in before) if v is not None and len(v)]
    changes = [np.flatnonzero(values[1:] != values[:-1]) + 1 for values in prefix]
    bounds = np.unique(np.concatenate([[0, frame.num_rows], steps, *changes])).tolist()
    groups: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for start, end in pairwise(bounds):
        groups.setdefault(tuple(int(values[start]) for values in prefix), []).append((start, end))
    return [piece for group in sorted(groups) for piece in _merged(lead, groups[group])]


def _merged(lead: npt.NDArray[Any], runs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of runs that are each in order the pieces in the order of all. Too many: it gave up."""
    turns = [(lead[start], start, end) for start, end in runs]
    heapify(turns)
    pieces: list[tuple[int, int]] = []
    while turns and len(pieces) <= _PIECES:
        _, start, end = heappop(turns)
        until = start + int(np.searchsorted(lead[start:end], turns[0][0], "right")) if turns else end
        pieces.append((start, until))
        if until < end:
            heappush(turns, (lead[until], until, end))
    return pieces


def ordered(table: Table, frame: pa.Table) -> pa.Table:
    """The rows in the table's order."""
    found = _steps(frame, table.sort_order)
    if found is not None and not len(found[0]):
        return frame
    import pyarrow.compute as pc  # it takes longer than a look at the lake, which needs none of this

    keys = {name: _sortable(frame.column(name)) for name in table.sort_order}
    return frame.take(pc.sort_indices(pa.table(keys), [(name, "ascending") for name in keys]))


def _steps(frame: pa.Table, columns: Sequence[str]) -> tuple[_Places, bool] | None:
    """The rows that should stand before the row above them, and whether any row equals the one above it.
    None where that cannot be told: NULLs, fractions, words that hardly repeat."""
    down = np.zeros(max(frame.num_rows - 1, 0), dtype=bool)
    same = ~down
    for name in columns:
        values = _comparable(frame.column(name))
        if values is None:
            return None
        if not len(values):
            continue
        above, below = values[:-1], values[1:]
        down |= same & (below < above)
        same &= below == above
        if not same.any():
            break
    return np.flatnonzero(down) + 1, bool(same.any())


def _comparable(values: pa.ChunkedArray) -> npt.NDArray[Any] | None:
    """Numbers in the values' order; none at all if there is only one value."""
    if values.null_count:
        return None
    if is_encoded(values.type):
        encoded = one_array(values)
        if len(encoded.dictionary) == 1:
            return np.empty(0)
        picked: npt.NDArray[Any] = ranks(encoded.dictionary)[numbers(encoded.indices)]
        return picked
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    if not pa.types.is_integer(values.type):
        return None
    found: npt.NDArray[Any] = one_array(values).to_numpy(zero_copy_only=False)
    return found


def _sortable(values: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    if not is_encoded(values.type):
        return values
    encoded = one_array(values)
    return pa.array(ranks(encoded.dictionary)).take(encoded.indices)

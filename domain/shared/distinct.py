"""Whether rows repeat: checked for every frame before it is written, so it must be cheap."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_COUNTED_UP_TO = 1 << 24


def are_distinct(rows: pa.Table) -> bool:
    """Whether no two rows are equal in all columns; a NULL equals a NULL."""
    if rows.num_rows < 2:
        return True
    label, kinds = np.zeros(rows.num_rows, dtype=np.int64), 1
    for column in rows.columns:
        numbers, many = _numbers(column)
        if kinds * many > np.iinfo(np.int64).max // 2:
            label, kinds = _renumbered(label)
        label = label * many + numbers
        kinds *= many
    if kinds > max(_COUNTED_UP_TO, 4 * rows.num_rows):
        label, kinds = _renumbered(label)
        return bool(kinds == rows.num_rows)
    return int(np.bincount(label, minlength=1).max()) == 1


def _renumbered(label: np.ndarray) -> tuple[np.ndarray, int]:
    values, label = np.unique(label, return_inverse=True)
    return label.astype(np.int64), len(values)


def _numbers(column: pa.ChunkedArray) -> tuple[np.ndarray, int]:
    """A number for each row's value, NULL's among them, and how many there may be."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False), len(encoded.dictionary)

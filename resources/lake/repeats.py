"""Columns whose values repeat, held as numbers into a short list of values (Arrow's dictionaries).

A column of ten million units is three hundred words and ten million small numbers: it is hashed, compared,
ordered and written by its words, and takes a tenth of the memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SAMPLE = 4096
Codes = npt.NDArray[Any]


def is_encoded(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind))


def value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if is_encoded(kind) else kind


def compact(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Words that repeat as numbers into one list; everything else as it is."""
    if not pa.types.is_string(values.type) or not _repeats(values):
        return values
    return values.dictionary_encode()


def well_encoded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column that came encoded, with one list for all chunks and each value in it once; else decoded."""
    values = values.unify_dictionaries()
    for words in (chunk.dictionary for chunk in values.chunks[:1]):
        if words.null_count or len(words.unique()) != len(words):
            return decoded(values)
    return values


def decoded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values.cast(values.type.value_type) if is_encoded(values.type) else values


def plain(frame: pa.Table) -> pa.Table:
    """The same rows, nothing encoded."""
    fields = [pa.field(f.name, value_type(f.type), f.nullable) for f in frame.schema]
    return pa.Table.from_arrays([decoded(c) for c in frame.columns], schema=pa.schema(fields))


def with_lists(frame: pa.Table) -> pa.Table:
    """The same rows, all words as numbers into one list for each column."""
    for place, field in enumerate(frame.schema):
        if pa.types.is_string(field.type):
            frame = frame.set_column(place, field.name, frame.column(place).dictionary_encode())
    return frame.unify_dictionaries()


def words_of(values: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """The distinct values, and of each row its number among them (NULL where it is NULL)."""
    encoded = one_array(values).dictionary_encode()
    return encoded.dictionary, encoded.indices


def one_array(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    return values


def _repeats(values: pa.ChunkedArray) -> bool:
    """By a few rows of the middle."""
    middle = max(0, len(values) // 2 - _SAMPLE // 2)
    few = values.slice(middle, _SAMPLE)
    return bool(len(few.unique()) * 2 <= len(few)) if len(few) > 1 else False


def repeats_much(values: pa.ChunkedArray) -> bool:
    """Whether a list of its values would make it smaller, as far as a few rows tell."""
    return is_encoded(values.type) or _repeats(values)


def numbers(values: pa.Array) -> Codes:
    """Numbers into a list, ready to pick with; 0 where there is no value."""
    found: Codes = (values.fill_null(0) if values.null_count else values).to_numpy(zero_copy_only=False)
    return found


def _sorted(words: pa.Array) -> npt.NDArray[np.uint64]:
    import pyarrow.compute as pc  # it takes longer than a look at the lake, which needs none of this

    found: npt.NDArray[np.uint64] = pc.sort_indices(words).to_numpy()
    return found


def ranks(words: pa.Array) -> npt.NDArray[np.int32]:
    """Of each distinct value its place in their order."""
    places = np.empty(len(words), dtype=np.int32)
    places[_sorted(words)] = np.arange(len(words), dtype=np.int32)
    return places

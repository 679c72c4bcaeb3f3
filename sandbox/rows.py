"""Numeric tables as JSON rows, written a column at a time: several times faster than value by value.

A row is laid out in words of four characters, numbers right-aligned and padded with blanks; dropping the
blanks of the whole table leaves compact JSON. Hence texts must hold neither blanks nor quotes nor
anything beyond ASCII, which is true of codes and days.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
"""One word of each row."""

_CHUNK = 10_000


def _table(texts: list[str]) -> Words:
    return np.array([text.encode() for text in texts]).view(np.uint32)


def _word(text: str) -> np.uint32:
    return np.uint32(_table([text])[0])


_ZEROS = _table([f"{n:04d}" for n in range(_CHUNK)])
_BLANKS = _table([f"{n:4d}" for n in range(_CHUNK)])
_FRACTION = {
    1: _table([f".{n:01d}  " for n in range(10)]),
    2: _table([f".{n:02d} " for n in range(100)]),
    3: _table([f".{n:03d}" for n in range(1000)]),
}
_LAST_DIGIT = _table([f"{n}   " for n in range(10)])
_NOTHING, _COMMA, _COMMA_MINUS, _NULL = _word("    "), _word(",   "), _word(",  -"), _word("null")
_OPEN, _OPEN_MINUS, _CLOSE = _word("[   "), _word("[  -"), _word("],  ")


def encode(columns: Sequence[tuple[np.ndarray, int | None]]) -> bytes:
    """A JSON list of rows. A column comes with its number of decimals, None for texts; NaN is null."""
    count = len(columns[0][0])
    if count == 0:
        return b"[]"
    words: list[Words | np.uint32] = []
    for number, (values, decimals) in enumerate(columns):
        separators = (_COMMA, _COMMA_MINUS) if number else (_OPEN, _OPEN_MINUS)
        if decimals is None:
            words += [separators[0], *_text(values)]
        else:
            words += _numbers(values, decimals, *separators)
    words.append(_CLOSE)
    upright = np.empty((len(words), count), dtype=np.uint32)
    for n, word in enumerate(words):
        upright[n] = word
    body = upright.T.tobytes().translate(None, b" ")
    return b"[" + body[:-1] + b"]"


def _text(values: np.ndarray) -> list[Words]:
    wide = np.ascontiguousarray(values).view(np.uint32).reshape(len(values), -1)
    width = wide.shape[1]
    block = np.full((len(values), -(-(width + 2) // 4) * 4), ord(" "), dtype=np.uint8)
    block[:, 0] = ord('"')
    block[:, 1 : width + 1] = wide
    block[:, width + 1] = ord('"')
    return list(block.view(np.uint32).T)


def _numbers(
    values: np.ndarray, decimals: int, separator: np.uint32, separator_minus: np.uint32
) -> list[Words | np.uint32]:
    missing = np.isnan(values) if values.dtype.kind == "f" else None
    if missing is None or not missing.any():
        return _digits(values, decimals, separator, separator_minus)
    words = _digits(np.where(missing, 0.0, values), decimals, separator, separator_minus)
    blank = [separator, *[_NOTHING] * (len(words) - 2), _NULL]
    return [np.where(missing, other, word) for word, other in zip(words, blank, strict=True)]


def _digits(
    values: np.ndarray, decimals: int, separator: np.uint32, separator_minus: np.uint32
) -> list[Words | np.uint32]:
    scale = 10**decimals
    scaled = np.rint(values * float(scale)).astype(np.int64) if decimals else values.astype(np.int64)
    negative = scaled < 0
    words: list[Words | np.uint32] = [separator]
    if negative.any():
        words = [np.where(negative, separator_minus, separator)]
        scaled = np.abs(scaled)
    whole = scaled // scale
    words += _whole(whole)
    if decimals:
        words += _fraction(scaled - whole * scale, decimals)
    return words


def _fraction(values: NDArray[np.int64], decimals: int) -> list[Words]:
    if decimals <= 3:
        return [_FRACTION[decimals][values]]
    first = values // 10
    return [_FRACTION[3][first], _LAST_DIGIT[values - first * 10]]


def _whole(values: NDArray[np.int64]) -> list[Words]:
    """Digits of numbers that are not negative, the highest four first."""
    words: list[Words] = []
    while True:
        higher = values // _CHUNK
        low = values - higher * _CHUNK
        leading = _BLANKS[low]
        if words:
            # Above the last four digits, a number that has ended is blank and not 0.
            leading = np.where(values > 0, leading, _NOTHING)
        if not higher.any():
            return [leading, *words]
        words.insert(0, np.where(higher > 0, _ZEROS[low], leading))
        values = higher

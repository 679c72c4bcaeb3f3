"""Numbers as people and their programs write them, column-wise: 1234.5, 1,234.5, 1.234,5, 1'234.5, 1 234,5.

A file has one decimal mark. Which one is told by the numbers that leave no doubt; where none does and a
number could be both (1,234), it is refused: a thousandfold mistake must not depend on a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Mark = Literal["point", "comma"]

MOST = 1e12
"""No quantity of ours is larger; what is, has its mark in the wrong place or is no quantity."""

_SPACES = "[ \u00a0\u202f'\u2019]"
_SPACED = rf"^[+-]?\d{{1,3}}({_SPACES}\d{{3}})+([.,]\d+)?$"
_PLAIN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$"
_SURELY_POINT = (
    r"^[+-]?(\d*\.(\d{1,2}|\d{4,})|0\.\d+|\d{4,}\.\d+)([eE][+-]?\d+)?$|^[+-]?\d{1,3}(,\d{3})+\.\d*$"
    r"|^[+-]?\d{1,3}(,\d{3}){2,}$|^[+-]?\d+\.\d+[eE][+-]?\d+$"
)
_SURELY_COMMA = (
    r"^[+-]?(\d*,(\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+)([eE][+-]?\d+)?$|^[+-]?\d{1,3}(\.\d{3})+,\d*$"
    r"|^[+-]?\d{1,3}(\.\d{3}){2,}$|^[+-]?\d+,\d+[eE][+-]?\d+$"
)
_EITHER = r"^[+-]?[1-9]\d{0,2},\d{3}$"
"""A thousand, or one and some thousandths. With a point in its place programs mean the latter."""


def trimmed(values: Any) -> Any:
    """Without the spaces around, and those among digits."""
    values = pc.utf8_trim_whitespace(values)
    spaced = pc.match_substring_regex(values, _SPACED)
    if pc.any(spaced).as_py():
        values = pc.if_else(spaced, pc.replace_substring_regex(values, _SPACES, ""), values)
    return values


def mark_of(columns: Sequence[Any]) -> Mark | None:
    """The decimal mark of a file's (trimmed) number columns; None where a number could be read both ways.

    Where both marks are used for sure, the more frequent one is the file's.
    """
    point = sum(_count(c, _SURELY_POINT) for c in columns)
    comma = sum(_count(c, _SURELY_COMMA) for c in columns)
    if point or comma:
        return "point" if point >= comma else "comma"
    return None if any(_count(c, _EITHER) for c in columns) else "point"


def _count(values: Any, pattern: str) -> int:
    return int(pc.sum(pc.match_substring_regex(values, pattern)).as_py() or 0)


def ambiguous(values: Any) -> np.ndarray:
    return np.asarray(pc.match_substring_regex(values, _EITHER))


def parsed(values: Any, mark: Mark) -> tuple[pa.Array, np.ndarray]:
    """Trimmed texts as numbers, and which of them are none. Empty cells are NULL and no mistake."""
    decimal, thousands = (".", ",") if mark == "point" else (",", ".")
    grouped = rf"^[+-]?\d{{1,3}}(\{thousands}\d{{3}})+(\{decimal}\d*)?$"
    if pc.any(pc.match_substring(values, thousands)).as_py():
        fits = pc.match_substring_regex(values, grouped)
        # What has the other mark and is no group of thousands stays as it is, and is no number.
        other = pc.and_(pc.match_substring(values, thousands), pc.invert(fits))
        values = pc.if_else(fits, pc.replace_substring(values, thousands, ""), values)
        values = pc.if_else(other, "?", values)
    if decimal == ",":
        values = pc.replace_substring(values, ",", ".")
    empty = pc.equal(values, "")
    fits = pc.match_substring_regex(values, _PLAIN)
    numbers = pc.cast(pc.if_else(fits, values, None), pa.float64())
    wrong = pc.invert(pc.or_(empty, fits))
    return numbers, np.asarray(wrong)

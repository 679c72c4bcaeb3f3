"""Numbers as people and their programs write them, column-wise: 1234.5, 1,234.5, 1.234,5, 1'234.5, 1 234,5.

A file has one decimal mark. The numbers that leave no doubt decide which; where none does and a
number could be both (1,234), it is refused: a thousandfold mistake must not depend on a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mark = Literal["point", "comma"]

MOST = 1e12
"""No quantity of ours is larger; what is, has its mark in the wrong place or is no quantity."""

_SPACES = "[ \u00a0\u2007\u2009\u202f'\u2019]"
_SPACED = rf"^[+-]?\d{{1,3}}({_SPACES}\d{{3}})+([.,]\d+)?$"
_PLAIN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$"
_CHARACTERS: dict[Mark, str] = {"point": ".", "comma": ","}


def _surely(decimal: str, thousands: str) -> str:
    """Numbers that can be read with this decimal mark only."""
    d, t = rf"\{decimal}", rf"\{thousands}"
    return "|".join(
        rf"^[+-]?{one}$"
        for one in (
            rf"(\d*{d}(\d{{1,2}}|\d{{4,}})|0{d}\d+|\d{{4,}}{d}\d+)([eE][+-]?\d+)?",
            rf"\d{{1,3}}({t}\d{{3}})+{d}\d*",
            rf"\d{{1,3}}({t}\d{{3}}){{2,}}",
            rf"\d+{d}\d+[eE][+-]?\d+",
        )
    )


_SURELY: dict[Mark, str] = {"point": _surely(".", ","), "comma": _surely(",", ".")}
_EITHER: dict[Mark, str] = {
    mark: rf"^[+-]?[1-9]\d{{0,2}}\{character}\d{{3}}$" for mark, character in _CHARACTERS.items()
}
"""A thousand, or one and some thousandths."""


@dataclass(frozen=True)
class Marks:
    """Return the decimal mark of a file, and the marks that are ambiguous, as in 1,234."""

    decimal: Mark
    doubtful: tuple[Mark, ...] = ()

    def in_doubt(self, values: Any) -> npt.NDArray[np.bool_]:
        found = np.zeros(len(values), dtype=bool)
        for mark in self.doubtful:
            found |= np.asarray(pc.match_substring_regex(values, _EITHER[mark]))
        return found


def trimmed(values: Any) -> Any:
    """Without the spaces among digits."""
    spaced = pc.match_substring_regex(values, _SPACED)
    if pc.any(spaced).as_py():
        values = pc.if_else(spaced, pc.replace_substring_regex(values, _SPACES, ""), values)
    return values


def marks_of(columns: Sequence[Any], *, points_in_doubt: bool = False) -> Marks:
    """The marks of a file's (trimmed) number columns.

    Where both are decimal marks for sure, the more frequent one is the file's and the other one is in doubt.
    Where neither is, a comma is in doubt. A point is none: programs write it so. Except where the file looks
    like a spreadsheet's, with `points_in_doubt`: half of the world writes 1.234 for a thousand.
    """
    point = sum(_count(c, _SURELY["point"]) for c in columns)
    comma = sum(_count(c, _SURELY["comma"]) for c in columns)
    if point and comma:
        return Marks("point", ("comma",)) if point >= comma else Marks("comma", ("point",))
    if point or comma:
        return Marks("point" if point else "comma")
    return Marks("point", ("comma", "point") if points_in_doubt else ("comma",))


def _count(values: Any, pattern: str) -> int:
    return int(pc.sum(pc.match_substring_regex(values, pattern)).as_py() or 0)


def parsed(values: Any, mark: Mark) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Trimmed texts as numbers, and which of them are none. Empty cells are NULL and no mistake."""
    decimal, thousands = (".", ",") if mark == "point" else (",", ".")
    strange = pc.match_substring(values, thousands)
    if pc.any(strange).as_py():
        fits = pc.match_substring_regex(values, rf"^[+-]?\d{{1,3}}(\{thousands}\d{{3}})+(\{decimal}\d*)?$")
        values = pc.if_else(fits, pc.replace_substring(values, thousands, ""), values)
        # What has the other mark and is no group of thousands is no number.
        values = pc.if_else(pc.and_not(strange, fits), "?", values)
    if decimal == ",":
        values = pc.replace_substring(values, ",", ".")
    fits = pc.match_substring_regex(values, _PLAIN)
    numbers = pc.cast(pc.if_else(fits, values, None), pa.float64())
    return numbers, np.asarray(pc.invert(pc.or_(pc.equal(values, ""), fits)))

"""The header of a file: names made alike, and refused where they cannot be those of a table."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from difflib import get_close_matches

from domain.shared.tabular.problems import refused

_MOST_COLUMNS = 500
_LONGEST = 200


def header_name(text: str) -> str:
    """`Unit ID ` and `unit_id` are one header."""
    word = unicodedata.normalize("NFC", text).strip("\ufeff").strip().casefold()
    return re.sub(r"[\s.\-/]+", "_", word)


def header_names(cells: Sequence[str], line: int, known: Collection[str]) -> list[str]:
    """The names in a header's cells: of the `known` ones there is at least one, or nearly."""
    names = [header_name(cell) for cell in cells]
    if not any(names):
        raise refused("header", "has no names", line=line)
    if len(names) > _MOST_COLUMNS:
        raise refused("header", f"has {len(names):,} columns: is its first line a header?", line=line)
    if not any(name in known or near(name, known) for name in names):
        raise refused(
            "header",
            "has no column of a file of this kind: a table starts with its header",
            line=line,
            value=" | ".join(cells),
        )
    if "" in names:
        raise refused("header", f"column {names.index('') + 1} has no name", line=line)
    if long := next((n for n in names if len(n) > _LONGEST), ""):
        raise refused("header", "is too long for a name: is the first line a header?", line=line, column=long)
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise refused("header", "is twice in the header", line=line, column=twice[0])
    return names


def near(name: str, names: Collection[str]) -> str:
    """The one that was meant, perhaps."""
    return next(iter(get_close_matches(name, sorted(names), 1, 0.7)), "")

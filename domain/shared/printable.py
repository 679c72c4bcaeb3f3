"""Text of others made printable."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    """Return the text with a mark for every invisible character except those to keep.

    They may be commands for a terminal. Postgres stores no NUL, no database half of a surrogate pair.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else "\N{REPLACEMENT CHARACTER}" for c in text)

"""Words of others made fit to be kept and shown."""

from __future__ import annotations


def printable(words: str, keep: str = "") -> str:
    """`words` with a mark for every character that cannot be seen, but those to keep.

    They may be commands for a terminal. Postgres stores no NUL, no database half of a surrogate pair.
    """
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() or c in keep else "\N{REPLACEMENT CHARACTER}" for c in words)

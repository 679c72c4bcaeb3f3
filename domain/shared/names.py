"""What a name given by others may be: of a file, an institution, a person. It ends up in keys, on pages
and in terminals."""

from __future__ import annotations

LONGEST = 200
"""Characters."""
_REPLACED = "\ufffd"
"""What decoders write for bytes that are no UTF-8: two names of such bytes would be one."""
_SEPARATORS = ("|", ":", "/")
"""Separators of names in keys and partitions."""


def fault_of_name(word: str) -> str:
    """Return why this is not a valid name; empty if it is."""
    if any(mark in word for mark in _SEPARATORS):
        return f"{word[:40]!r}: {' '.join(_SEPARATORS)} may not be in it"
    return fault_of_text(word)


def fault_of_text(word: str, longest: int = LONGEST) -> str:
    """The same of what is only shown."""
    if _REPLACED in word:
        return f"{word[:40]!r}: it is not in UTF-8"
    if not word or len(word) > longest or not word.isprintable():
        return f"{word[:40]!r}: 1 to {longest} characters that can be seen"
    return ""

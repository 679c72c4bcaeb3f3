"""Reason codes and partitions in a few plain words, as the tags, logs and events of runs show them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

SHORT = {
    "": "requested by a person",
    "requested": "requested by a person",
    "retried": "retried by a person",
    "missing": "gap",
    "incomplete": "thin",
    "partial": "thin",
    "inputs_changed": "input changed",
    "unrecorded": "changed outside",
    "recheck": "looked up again",
}
"""Of codes whose name with spaces would not say it."""
_UNITS = {r"\d{4}-\d\d-\d\d": "days", r"\d{4}": "years"}


def reason_in_words(code: str) -> str:
    return SHORT.get(code, code.replace("_", " "))


def partitions_in_words(partitions: Collection[str]) -> str:
    """The only one by its name, several as a number: "2026-11-17", "3 days"."""
    if len(partitions) == 1:
        return next(iter(partitions))
    return f"{len(partitions)} {unit_of(partitions)}"


def unit_of(partitions: Collection[str]) -> str:
    """What several partitions are called: days, years, or just partitions."""
    return next(
        (u for p, u in _UNITS.items() if all(re.fullmatch(p, one) for one in partitions)), "partitions"
    )


def reasons_in_words(pairs: Iterable[tuple[str, str]]) -> str:
    """Of reason codes and partitions, which partitions have which: "changed: 2026-11-16, gap: 2 days".

    Of one partition only the reasons: whatever shows them shows the partition too.
    """
    found: dict[str, set[str]] = {}
    for code, partition in pairs:
        found.setdefault(reason_in_words(code), set()).add(partition)
    if len({partition for of in found.values() for partition in of}) == 1:
        return ", ".join(sorted(found))
    return ", ".join(f"{words}: {partitions_in_words(of)}" for words, of in sorted(found.items()))

"""Fallback factors: an entry whose words have no factor of their own is counted with a more general one.

`country FR` may be counted with the factor of `country world`. That is allowed, and is always named.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from domain.carbon.catalogue import EntryType
from domain.carbon.choice import choose

SHOWN = 3
"""Of the kinds of fallback, those that a sentence names."""


@dataclass(frozen=True)
class Fallback:
    """Entries of a type with the same words, that are counted with a fallback factor."""

    data_entry_type: str
    wanted: str
    """The entries' classification."""
    used: str
    """The factor's."""
    entries: int
    results: int = 0
    """One of each entry and kind of emissions."""
    mg: int = 0

    @property
    def instead(self) -> str:
        """`kind paper, treatment incineration as average`."""
        wanted: Mapping[str, str] = json.loads(self.wanted)
        pairs = [(name, wanted.get(name, "not given"), word) for name, word in json.loads(self.used).items()]
        return ", ".join(
            f"{name} {mine} as {word}" if is_fallback(mine, word) else f"{name} {mine}"
            for name, mine, word in pairs
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class FactorGaps:
    """What the factors of a year leave open of a file's rows."""

    year: int
    rows: int
    fallbacks: tuple[Fallback, ...]
    unmatched: Mapping[str, int]
    """By classification, the rows that no factor matches, for one kind of emissions at least."""

    @property
    def notes(self) -> Iterator[str]:
        if self.fallbacks:
            named = [f"{one.instead} ({one.entries:,})" for one in self.fallbacks]
            rows = sum({one.wanted: one.entries for one in self.fallbacks}.values())
            yield f"{self._of_rows(rows)} use a fallback factor: {_first(named)}"
        if self.unmatched:
            named = [f"{in_words(words)} ({rows:,})" for words, rows in self.unmatched.items()]
            yield f"{self._of_rows(sum(self.unmatched.values()))} have no factor yet: {_first(named)}"

    def _of_rows(self, count: int) -> str:
        return f"{count:,} of {self.rows:,} rows of {self.year}"


def is_fallback(wanted: str, used: str) -> bool:
    """Whether a factor is for other words than the entry's; `ch` is `CH`."""
    return wanted.casefold() != used.casefold()


def in_words(classification: str) -> str:
    """`cabin economy, haul long`."""
    return ", ".join(f"{name} {word}" for name, word in json.loads(classification).items()) or "any entry"


def factor_gaps(kind: EntryType, year: int, rows: pa.Table, factors: pa.Table) -> FactorGaps:
    """Return what these factors leave open of the entries of a type and year, the most frequent first."""
    calculated = rows.column("classification").filter(rows.column("kg_co2eq").is_null())
    counted = calculated.value_counts().to_pylist()
    counts = {one["values"]: one["counts"] for one in sorted(counted, key=lambda one: -one["counts"])}
    chosen = [pair for choice in choose(kind, list(counts), factors).values() for pair in choice.items()]
    used = {(words, one.classification): None for words, one in chosen if one is not None}
    fallbacks = [Fallback(kind.name, *pair, counts[pair[0]]) for pair in used if is_fallback(*pair)]
    unmatched = {words: counts[words] for words, one in chosen if one is None}
    return FactorGaps(year, rows.num_rows, tuple(fallbacks), unmatched)


def fallback_note(found: Sequence[Fallback], results: int, total_mg: int) -> str:
    """Return a sentence about the results of a report that are counted with a fallback; empty without any."""
    if not found:
        return ""
    mg, count = sum(one.mg for one in found), sum(one.results for one in found)
    share = f" ({100 * mg / total_mg:.1f} % of the total)" if total_mg else ""
    return f"{count:,} of {results:,} results, {mg / 1e9:,.3f} t{share}, use a fallback factor"


def _first(named: Sequence[str]) -> str:
    more = f"; and {len(named) - SHOWN:,} more" if len(named) > SHOWN else ""
    return "; ".join(named[:SHOWN]) + more

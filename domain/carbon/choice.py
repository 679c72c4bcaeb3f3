"""Choice of the factor of an entry: by all of its classification, or by as much of it as possible."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.catalogue import EntryType
from domain.carbon.classification import canonical_value, spelled


@dataclass(frozen=True)
class Factor:
    classification: str
    id: int
    version: int
    value: float
    unit: str


Choice = dict[str, "Factor | None"]
"""By classification; None where no factor serves."""


def choose(kind: EntryType, wanted: Sequence[str], factors: pa.Table) -> dict[str, Choice]:
    """For each kind of emissions, in their order, the factor of each classification.

    Emissions without any factor in the year are unmatched: a file that lacks them makes no zero of
    them. Only those that the catalogue calls optional are then not counted.
    """
    by_emission = _by_emission(kind, factors)
    counted = [e.name for e in kind.emissions if e.name in by_emission or not e.optional]
    picks = {name: _picker(kind, by_emission.get(name, {})) for name in sorted(counted)}
    return {name: {words: pick(words) for words in wanted} for name, pick in picks.items()}


def _by_emission(kind: EntryType, factors: pa.Table) -> dict[str, dict[str, Factor]]:
    mine = factors.filter(pc.equal(factors.column("data_entry_type"), kind.name))
    names = ("emission_type", "classification", "factor_id", "version", "value", "unit")
    found: dict[str, dict[str, Factor]] = defaultdict(dict)
    for emission, wanted, *factor in zip(*(mine.column(n).to_pylist() for n in names), strict=True):
        found[emission][wanted] = Factor(wanted, *factor)
    return found


def _picker(kind: EntryType, factors: Mapping[str, Factor]) -> Callable[[str], Factor | None]:
    """Finds the factor of exactly an entry's words; else of as many of them as possible, the others at their
    fallback. Of two that keep as many, the one that keeps the earlier columns.

    `ch` is `CH`, unless there is a factor for either: else it would take its fallback and nobody would know.
    """
    loosely: dict[str, Factor | None] = {}
    for words, factor in factors.items():
        loosely[words.casefold()] = None if words.casefold() in loosely else factor
    fallbacks = {c.name: canonical_value(c.fallback) for c in reversed(kind.keys) if c.fallback}
    instead = [
        {name: fallbacks[name] for name in given_up}
        for count in range(1, len(fallbacks) + 1)
        for given_up in combinations(fallbacks, count)
    ]

    def find(words: str) -> Factor | None:
        return factors.get(words) or loosely.get(words.casefold())

    def pick(wanted: str) -> Factor | None:
        found = find(wanted)
        if found is None and instead:
            parts: dict[str, str] = json.loads(wanted)
            others = (find(spelled(parts | words)) for words in instead)
            found = next((factor for factor in others if factor is not None), None)
        return found

    return pick

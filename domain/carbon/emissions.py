"""From entries and factors to masses: one query per type, whole milligrams per row."""

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
from domain.carbon.quantities import factor_unit, to_milligrams
from domain.carbon.quantities import unit as quantity_unit
from domain.carbon.tables import EMISSIONS
from domain.shared.compute import packaged, query
from domain.shared.error import InvalidInput

MOST = 9_007_199_254_740_992
"""Milligrams one result may have: nine million tonnes. What is more, is a mistake in an amount or a factor;
and beyond it doubles no longer know whole milligrams."""

_CHOICES = pa.schema(
    [
        ("classification", pa.string()),
        ("emission_type", pa.string()),
        ("factor_id", pa.int64()),
        ("factor_version", pa.int32()),
    ]
)
_RATES = pa.schema([("factor_id", pa.int64()), ("unit", pa.string()), ("mg_per_unit", pa.float64())])


@dataclass(frozen=True)
class Factor:
    id: int
    version: int
    value: float
    unit: str


def emissions(kind: EntryType, entries: pa.Table, factors: pa.Table) -> pa.Table:
    """What the entries of one type and year cause, with the factors of that year.

    `entries` needs the columns year, entry_key, unit_id, quantity, unit, classification, kg_co2eq.
    """
    choices, used = choose(kind, _distinct(entries, "classification"), factors)
    relations = {"entries": entries, "choices": choices, "rates": rates(used, _distinct(entries, "unit"))}
    parameters = {"type": kind.name, "first": kind.emissions[0].name}
    frame = query(packaged(__file__, "emissions"), relations, parameters).cast(EMISSIONS.schema)
    _check_size(kind, frame)
    return frame


def _distinct(entries: pa.Table, column: str) -> list[str]:
    words: list[str] = pc.unique(entries.column(column)).to_pylist()
    return words


def choose(kind: EntryType, wanted: Sequence[str], factors: pa.Table) -> tuple[pa.Table, list[Factor]]:
    """For each classification and each kind of emissions the factor, and all that were chosen.

    Emissions that no factor of the year speaks of are not counted at all; if none is spoken of, the first is
    unmatched, so that nothing vanishes.
    """
    by_emission = _by_emission(kind, factors)
    counted = [e.name for e in kind.emissions if e.name in by_emission] or [kind.emissions[0].name]
    chosen: list[Factor | None] = []
    for emission in counted:
        pick = _picker(kind, by_emission.get(emission, {}))
        chosen += map(pick, wanted)
    columns = (
        list(wanted) * len(counted),
        [emission for emission in counted for _ in wanted],
        [factor and factor.id for factor in chosen],
        [factor and factor.version for factor in chosen],
    )
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _CHOICES, strict=True)]
    used = {factor.id: factor for factor in chosen if factor is not None}
    return pa.table(arrays, schema=_CHOICES), list(used.values())


def rates(used: Sequence[Factor], units: Sequence[str]) -> pa.Table:
    """Milligrams of one unit by each factor: converted once, however many entries have it."""
    sizes = [quantity_unit(name) for name in units]
    convert = {
        text: [to_milligrams(factor_unit(text), size) for size in sizes] for text in {f.unit for f in used}
    }
    columns = (
        [factor.id for factor in used for _ in units],
        [name for _ in used for name in units],
        [one(factor.value) for factor in used for one in convert[factor.unit]],
    )
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, _RATES, strict=True)], schema=_RATES)


def _by_emission(kind: EntryType, factors: pa.Table) -> dict[str, dict[str, Factor]]:
    mine = factors.filter(pc.equal(factors.column("data_entry_type"), kind.name))
    names = ("emission_type", "classification", "factor_id", "version", "value", "unit")
    found: dict[str, dict[str, Factor]] = defaultdict(dict)
    for emission, wanted, *factor in zip(*(mine.column(n).to_pylist() for n in names), strict=True):
        found[emission][wanted] = Factor(*factor)
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


def _check_size(kind: EntryType, frame: pa.Table) -> None:
    sql = "SELECT entry_key, mg_co2e FROM emissions WHERE abs(mg_co2e) > $most LIMIT 1"
    for row in query(sql, {"emissions": frame}, {"most": MOST}).to_pylist():
        raise ImplausibleMass(kind.name, row["entry_key"], row["mg_co2e"])


class ImplausibleMass(InvalidInput):
    """An entry and its factor cannot both be right."""

    reason_code = "implausible_mass"

    def __init__(self, data_entry_type: str, entry_key: int, mg: int, entry: str = "") -> None:
        super().__init__(
            f"{entry or f'entry {entry_key}'} of {data_entry_type} would cause "
            f"{mg / 1e9:,.0f} tonnes or more",
            remedy="look at its amount and at the factor's unit, and upload the wrong one again",
        )
        self.data_entry_type = data_entry_type
        self.entry_key = entry_key
        self.mg = mg

"""What follows from an entry's words and unit: looked up once for each pair of them, told in Arrow's lists.

A result has a code: its pair and kind of emissions, or that its mass was measured. All else follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from domain.carbon.catalogue import EntryType
from domain.carbon.choice import Choice, Factor
from domain.carbon.quantities import factor_unit, to_milligrams
from domain.carbon.quantities import unit as quantity_unit
from domain.carbon.tables import EMISSIONS

AT_ONCE = 1 << 16
"""Entries that are looked at together: few enough for the processor's cache, and for `Sums`."""
STATUS = ("matched", "unmatched", "overridden")
Codes = npt.NDArray[np.int32]
_LISTED = {
    "year": pa.uint8(),
    "data_entry_type": pa.uint8(),
    "emission_type": pa.uint8(),
    "unit_id": pa.int32(),
    "status": pa.uint8(),
    "factor_id": pa.int32(),
    "factor_version": pa.int32(),
}
"""Columns whose values repeat, and the numbers that stand for them."""
FRAME = pa.schema(
    [
        pa.field(c.name, pa.dictionary(_LISTED[c.name], c.type) if c.name in _LISTED else c.type, c.nullable)
        for c in EMISSIONS.columns
    ]
)
GROUPS = pa.schema(
    {
        "emission_type": pa.string(),
        "status": pa.string(),
        "factor_id": pa.int64(),
        "factor_version": pa.int32(),
        "results": pa.int64(),
        "mg_co2e": pa.decimal128(38),
    }
)


@dataclass
class Sums:
    """By code, how many results there are and their milligrams, which stay whole: the upper and the lower
    half of the numbers are summed apart, and the halves of a batch, of up to 32 kinds of emissions, are less
    than a double knows exactly."""

    results: npt.NDArray[np.int64]
    upper: npt.NDArray[np.int64]
    lower: npt.NDArray[np.int64]

    @classmethod
    def of(cls, codes: int, code: Codes, mg: npt.NDArray[np.int64]) -> Sums:
        halves = (np.bincount(code, of, codes).astype(np.int64) for of in (mg >> 32, mg & 0xFFFFFFFF))
        return cls(np.bincount(code, minlength=codes), *halves)

    @classmethod
    def together(cls, codes: int, some: Sequence[Sums]) -> Sums:
        whole = cls(*np.zeros((3, codes), dtype=np.int64))
        for one in some:
            whole.results += one.results
            whole.upper += one.upper
            whole.lower += one.lower
        return whole

    def milligrams(self, code: int) -> int:
        return (int(self.upper[code]) << 32) + int(self.lower[code])


@dataclass(frozen=True)
class Outcomes:
    """What follows from a result's code: pair × kind of emissions, and at the end a measured mass."""

    years: pa.Array
    types: pa.Array
    emissions: pa.Array
    emission: npt.NDArray[np.uint8]
    statuses: pa.Array
    status: npt.NDArray[np.uint8]
    has_mass: npt.NDArray[np.bool_]
    has_factor: npt.NDArray[np.bool_]
    factors: pa.Array
    factor: Codes
    versions: pa.Array
    version: Codes
    rate: npt.NDArray[np.float64]
    """Milligrams of one unit."""

    @property
    def last(self) -> int:
        """The code of a measured mass."""
        return len(self.status) - 1

    @classmethod
    def of(
        cls, kind: EntryType, year: int, pairs: Sequence[tuple[str, str]], chosen: Mapping[str, Choice]
    ) -> Outcomes:
        first = kind.emissions[0].name
        names = list(dict.fromkeys([*chosen, first]))
        serving = [choice[words] for words, _ in pairs for choice in chosen.values()]
        factors, factor = _listed([None if f is None else f.id for f in serving])
        versions, version = _listed([None if f is None else f.version for f in serving])
        status = [0 if f is not None else 1 for f in serving]
        emission = [*range(len(chosen))] * len(pairs)
        return cls(
            years=pa.array([year], pa.int32()),
            types=pa.array([kind.name]),
            emissions=pa.array(names),
            emission=np.array([*emission, names.index(first)], dtype=np.uint8),
            statuses=pa.array(STATUS),
            status=np.array([*status, 2], dtype=np.uint8),
            has_mass=np.array([*(s == 0 for s in status), True]),
            has_factor=np.array([*(s == 0 for s in status), False]),
            factors=pa.array(factors, pa.int64()),
            factor=factor,
            versions=pa.array(versions, pa.int32()),
            version=version,
            rate=np.array([*_rates(pairs, chosen), 0.0]),
        )

    def groups(self, sums: Sums) -> pa.Table:
        """The codes that occur, in words, with what they come to."""
        codes = np.flatnonzero(sums.results)
        masses = [sums.milligrams(n) if self.has_mass[n] else None for n in codes.tolist()]
        without_factor = ~self.has_factor[codes]
        columns = [
            self.emissions.take(pa.array(self.emission[codes])),
            self.statuses.take(pa.array(self.status[codes])),
            self.factors.take(pa.array(self.factor[codes], mask=without_factor)),
            self.versions.take(pa.array(self.version[codes], mask=without_factor)),
            pa.array(sums.results[codes]),
            pa.array(masses, GROUPS.field("mg_co2e").type),
        ]
        return pa.Table.from_arrays(columns, schema=GROUPS)


def _listed(values: Sequence[int | None]) -> tuple[list[int], Codes]:
    """Each value once, and of each code its place among them; some place where it has none."""
    known = list(dict.fromkeys(value for value in values if value is not None))
    places = {value: place for place, value in enumerate(known)}
    return known, np.array([*(0 if v is None else places[v] for v in values), 0], dtype=np.int32)


def _rates(pairs: Sequence[tuple[str, str]], chosen: Mapping[str, Choice]) -> Iterator[float]:
    """Of each pair the milligrams of one unit, by kind of emissions: converted once."""
    sizes = {name: quantity_unit(name) for name in dict.fromkeys(unit for _, unit in pairs)}
    known: dict[tuple[str, str], Callable[[float], float]] = {}
    for words, unit in pairs:
        for choice in chosen.values():
            factor: Factor | None = choice[words]
            if factor is None:
                yield 0.0
                continue
            if (factor.unit, unit) not in known:
                known[factor.unit, unit] = to_milligrams(factor_unit(factor.unit), sizes[unit])
            yield float(known[factor.unit, unit](factor.value))


def encoded(numbers: Any, words: pa.Array, mask: Any = None) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=mask), words)

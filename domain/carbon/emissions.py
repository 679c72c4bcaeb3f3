"""From entries and factors to masses: whole milligrams per row.

An entry's words and unit, a few dozen pairs in a type, say what follows: the factor and what one unit causes,
the kind of emissions, the status. That is looked up once for each pair, and stays a list and numbers into it
(Arrow's dictionaries): ten million results are 400 MB instead of more than a gigabyte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.catalogue import EntryType
from domain.carbon.choice import Choice, Factor, choose
from domain.carbon.quantities import factor_unit, to_milligrams
from domain.carbon.quantities import unit as quantity_unit
from domain.carbon.tables import EMISSIONS
from domain.shared.error import InvalidInput

MOST = 9_007_199_254_740_992
"""Milligrams one result may have: nine million tonnes. What is more, is a mistake in an amount or a factor;
and beyond it doubles no longer know whole milligrams."""
MOST_OF_A_TYPE = 100_000_000_000_000_000
"""Milligrams all results of a type and year may have: a hundred million tonnes. Each may be plausible by
itself, and their sums, of all types together, have to fit into the tables."""

NEEDED = ("entry_key", "unit_id", "quantity", "unit", "classification", "kg_co2eq")
"""What a calculation reads of an entry."""
_WORDS = ("unit_id", "unit", "classification")
_AT_ONCE = 1 << 16
"""Entries that are looked at together: few enough for the processor's cache, and for `_Sums`."""
_BEYOND = 9.2e18
"""In the place of masses that are more, not a number or infinite: an absurd result, that names its entry."""
_STATUS = ("matched", "unmatched", "overridden")


def emissions(kind: EntryType, entries: pa.Table, factors: pa.Table) -> pa.Table:
    """What the entries of one type and year cause, with the factors of that year."""
    year = entries.column("year")[0].as_py() if entries.num_rows else 0
    return calculated(kind, year, entries, factors).frame.cast(EMISSIONS.schema)


def calculated(kind: EntryType, year: int, entries: pa.Table, factors: pa.Table) -> Results:
    """The same, with what it comes to. Of the entries it needs the columns `NEEDED`; words may be encoded."""
    encoded = _encoded_words(entries.select(NEEDED))
    return _Calculation.of(kind, year, encoded, factors).results(encoded)


@dataclass(frozen=True)
class Results:
    """What the entries of a type and year cause."""

    frame: pa.Table
    """A row per entry and kind of emissions, in the order of the entries."""
    groups: pa.Table
    """What these come to, by what decided them: a few dozen rows instead of millions."""


@dataclass(frozen=True)
class _Calculation:
    """How the entries of one type and year are calculated."""

    kind: EntryType
    year: int
    pairs: list[tuple[str, str]]
    """Of words and unit, that entries have."""
    places: _Codes
    """Of each combination of words and unit, in the order of their lists, its place among the pairs."""
    chosen: dict[str, Choice]

    @classmethod
    def of(cls, kind: EntryType, year: int, entries: pa.Table, factors: pa.Table) -> _Calculation:
        words, units = (_list_of(entries.column(name)) for name in ("classification", "unit"))
        occur = np.zeros(len(words) * len(units), dtype=bool)
        for batch in entries.to_batches(max_chunksize=_AT_ONCE):
            occur[_combinations(batch)] = True
        present = np.flatnonzero(occur)
        places = np.zeros(len(occur), dtype=np.int32)
        places[present] = np.arange(len(present), dtype=np.int32)
        pairs = [(words[n // len(units)], units[n % len(units)]) for n in present.tolist()]
        chosen = choose(kind, list(dict.fromkeys(w for w, _ in pairs)), factors)
        return cls(kind, year, pairs, places, chosen)

    def results(self, entries: pa.Table) -> Results:
        sums = _Sums.none(len(self._lists.status))
        frame = pa.Table.from_batches(self._batches(entries, sums), schema=_FRAME)
        groups = self._lists.groups(sums)
        whole = int(pc.sum(groups.column("mg_co2e"), min_count=0).as_py())
        if whole > MOST_OF_A_TYPE:
            raise ImplausibleSum(self.kind.name, self.year, whole)
        return Results(frame, groups)

    def _batches(self, entries: pa.Table, sums: _Sums) -> Iterator[pa.RecordBatch]:
        for batch in entries.to_batches(max_chunksize=_AT_ONCE):
            measured = batch.column("kg_co2eq").is_valid().to_numpy(zero_copy_only=False)
            code, entry = self._codes(self.places[_combinations(batch)], measured)
            # A row per entry already, unless there are several kinds of emissions.
            rows = batch if entry is None else batch.take(pa.array(entry))
            mg = self._milligrams(rows, code)
            made = self._batch(rows, code, mg)
            sums.add(code, mg)
            yield made

    def _codes(
        self, pair: _Codes, measured: npt.NDArray[np.bool_]
    ) -> tuple[_Codes, npt.NDArray[np.int64] | None]:
        """Of each result its place in the lists, and its entry."""
        kinds, last = len(self.chosen), self._lists.last
        if kinds == 1:
            return np.where(measured, np.int32(last), pair), None
        codes = np.asarray(pair[:, None] * kinds + np.arange(kinds), dtype=np.int32)
        codes[measured, 0] = last
        there = np.ones(codes.shape, dtype=bool)
        there[measured, 1:] = False  # a measured mass takes the place of everything calculated
        return codes[there], np.flatnonzero(there) // kinds

    def _milligrams(self, entries: pa.RecordBatch, code: _Codes) -> npt.NDArray[np.int64]:
        """Rounded, halves away from zero. Where a result has no mass it is some number."""
        with np.errstate(over="ignore", invalid="ignore"):
            mass = entries.column("quantity").to_numpy() * self._lists.rate[code]
            measured = np.flatnonzero(code == self._lists.last)
            if len(measured):
                kg = entries.column("kg_co2eq").take(pa.array(measured))
                mass[measured] = kg.to_numpy() * 1e6
        mass = np.fmax(np.fmin(mass, _BEYOND), -_BEYOND)
        whole = np.rint(mass)
        even = np.abs(mass - whole) == 0.5
        if even.any():
            whole[even] = np.trunc(mass[even]) + np.copysign(1, mass[even])
        made: npt.NDArray[np.int64] = whole.astype(np.int64)
        return made

    def _batch(self, entries: pa.RecordBatch, code: _Codes, mg: npt.NDArray[np.int64]) -> pa.RecordBatch:
        lists = self._lists
        has_mass = lists.has_mass[code]
        self._check_size(entries, mg, has_mass)
        none = np.zeros(len(code), dtype=np.uint8)
        without_factor = ~lists.has_factor[code]
        columns = [
            _encoded(none, lists.years),
            _encoded(none, lists.types),
            entries.column("entry_key"),
            _encoded(lists.emission[code], lists.emissions),
            entries.column("unit_id"),
            _encoded(lists.status[code], lists.statuses),
            pa.array(mg, pa.int64(), mask=None if has_mass.all() else ~has_mass),
            _encoded(lists.factor[code], lists.factors, without_factor),
            pa.array(lists.version[code], pa.int32(), mask=without_factor),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_FRAME)

    @cached_property
    def _lists(self) -> _Lists:
        return _Lists.of(self)

    def _check_size(self, entries: pa.RecordBatch, mg: Any, has_mass: Any) -> None:
        for place in np.flatnonzero(((mg > MOST) | (mg < -MOST)) & has_mass)[:1].tolist():
            raise ImplausibleMass(self.kind.name, entries.column("entry_key")[place].as_py(), int(mg[place]))


_Codes = npt.NDArray[np.int32]
_FEW = {
    "year": pa.int32(),
    "data_entry_type": pa.string(),
    "emission_type": pa.string(),
    "status": pa.string(),
}
_MANY = {"unit_id": pa.string(), "factor_id": pa.int64()}
_FRAME = pa.schema(
    [
        pa.field(
            c.name,
            pa.dictionary(pa.uint8(), _FEW[c.name])
            if c.name in _FEW
            else pa.dictionary(pa.int32(), _MANY[c.name])
            if c.name in _MANY
            else c.type,
            c.nullable,
        )
        for c in EMISSIONS.columns
    ]
)


_GROUPS = pa.schema(
    {
        "emission_type": pa.string(),
        "status": pa.string(),
        "factor_id": pa.int64(),
        "factor_version": pa.int32(),
        "results": pa.int64(),
        "mg_co2e": pa.decimal128(38),
    }
)


@dataclass(frozen=True)
class _Sums:
    """By code, how many results there are and their milligrams, which stay whole: the upper and the lower
    half of the numbers are summed apart, and a batch of halves is less than a double knows exactly."""

    results: npt.NDArray[np.int64]
    upper: npt.NDArray[np.int64]
    lower: npt.NDArray[np.int64]

    @classmethod
    def none(cls, codes: int) -> _Sums:
        return cls(*np.zeros((3, codes), dtype=np.int64))

    def add(self, code: _Codes, mg: npt.NDArray[np.int64]) -> None:
        many = len(self.results)
        self.results[:] += np.bincount(code, minlength=many)
        for half, of in ((self.upper, mg >> 32), (self.lower, mg & 0xFFFFFFFF)):
            half[:] += np.bincount(code, of, minlength=many).astype(np.int64)

    def milligrams(self, code: int) -> int:
        return (int(self.upper[code]) << 32) + int(self.lower[code])


@dataclass(frozen=True)
class _Lists:
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
    factor: _Codes
    version: _Codes
    rate: npt.NDArray[np.float64]
    """Milligrams of one unit."""

    @property
    def last(self) -> int:
        """The code of a measured mass."""
        return len(self.status) - 1

    @classmethod
    def of(cls, one: _Calculation) -> _Lists:
        first = one.kind.emissions[0].name
        names = list(dict.fromkeys([*one.chosen, first]))
        serving = [choice[words] for words, _ in one.pairs for choice in one.chosen.values()]
        ids = list(dict.fromkeys(factor.id for factor in serving if factor is not None))
        places = {number: place for place, number in enumerate(ids)}
        status = [0 if factor is not None else 1 for factor in serving]
        emission = [*range(len(one.chosen))] * len(one.pairs)
        return cls(
            years=pa.array([one.year], pa.int32()),
            types=pa.array([one.kind.name]),
            emissions=pa.array(names),
            emission=np.array([*emission, names.index(first)], dtype=np.uint8),
            statuses=pa.array(_STATUS),
            status=np.array([*status, 2], dtype=np.uint8),
            has_mass=np.array([*(s == 0 for s in status), True]),
            has_factor=np.array([*(s == 0 for s in status), False]),
            factors=pa.array(ids, pa.int64()),
            factor=np.array([*(places[f.id] if f else 0 for f in serving), 0], dtype=np.int32),
            version=np.array([*(f.version if f else 0 for f in serving), 0], dtype=np.int32),
            rate=np.array([*_rates(one.pairs, one.chosen), 0.0]),
        )

    def groups(self, sums: _Sums) -> pa.Table:
        """The codes that occur, in words, with what they come to."""
        codes = np.flatnonzero(sums.results)
        masses = [sums.milligrams(n) if self.has_mass[n] else None for n in codes.tolist()]
        without_factor = ~self.has_factor[codes]
        columns = [
            self.emissions.take(pa.array(self.emission[codes])),
            self.statuses.take(pa.array(self.status[codes])),
            self.factors.take(pa.array(self.factor[codes], mask=without_factor)),
            pa.array(self.version[codes], pa.int32(), mask=without_factor),
            pa.array(sums.results[codes]),
            pa.array(masses, _GROUPS.field("mg_co2e").type),
        ]
        return pa.Table.from_arrays(columns, schema=_GROUPS)


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


def _encoded(numbers: Any, words: pa.Array, mask: Any = None) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=mask), words)


def _encoded_words(entries: pa.Table) -> pa.Table:
    """With one list for each column of words."""
    for name in _WORDS:
        column = entries.column(name)
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        place = entries.schema.get_field_index(name)
        entries = entries.set_column(place, name, encoded.unify_dictionaries())
    return entries


def _list_of(column: pa.ChunkedArray) -> list[str]:
    words: list[str] = column.chunk(0).dictionary.to_pylist() if column.num_chunks else []
    return words


def _combinations(entries: pa.RecordBatch) -> npt.NDArray[Any]:
    """A number for the words and the unit of each entry."""
    words, units = entries.column("classification"), entries.column("unit")
    numbers: npt.NDArray[Any] = words.indices.to_numpy()
    if len(units.dictionary) > 1:
        numbers = numbers.astype(np.int64) * len(units.dictionary) + units.indices.to_numpy()
    return numbers


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


class ImplausibleSum(InvalidInput):
    """Each entry may be right by itself; all of them cannot be."""

    reason_code = "implausible_mass"

    def __init__(self, data_entry_type: str, year: int, mg: float) -> None:
        super().__init__(
            f"all entries of {data_entry_type} {year} together would cause {mg / 1e9:,.0f} tonnes",
            remedy="look at the unit of its amounts and of its factors, and upload the wrong file again",
        )

"""From entries and factors to masses: whole milligrams per row.

An entry's words and unit, a few dozen pairs in a type, say what follows (outcomes.py). Words come and go as
lists and numbers into them (Arrow's dictionaries): ten million results are 400 MB instead of a gigabyte.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.catalogue import EntryType
from domain.carbon.choice import Choice, choose
from domain.carbon.outcomes import AT_ONCE, FRAME, Codes, Outcomes, Sums, encoded
from domain.carbon.tables import EMISSIONS
from domain.shared.abreast import abreast
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
_BEYOND = 9.2e18
"""In the place of masses that are more, not a number or infinite: an absurd result, that names its entry."""


def emissions(kind: EntryType, entries: pa.Table, factors: pa.Table) -> pa.Table:
    """What the entries of one type and year cause, with the factors of that year."""
    year = entries.column("year")[0].as_py() if entries.num_rows else 0
    return calculated(kind, year, entries, factors).frame.cast(EMISSIONS.schema)


def calculated(kind: EntryType, year: int, entries: pa.Table, factors: pa.Table) -> Results:
    """The same, with what it comes to. Of the entries it needs the columns `NEEDED`; words may be encoded."""
    rows = _encoded_words(entries.select(NEEDED))
    return _Calculation.of(kind, year, rows, factors).results(rows)


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
    places: Codes
    """Of each combination of words and unit, in the order of their lists, its place among the pairs."""
    chosen: dict[str, Choice]

    @classmethod
    def of(cls, kind: EntryType, year: int, entries: pa.Table, factors: pa.Table) -> _Calculation:
        words, units = (_list_of(entries.column(name)) for name in ("classification", "unit"))
        occur = np.zeros(len(words) * len(units), dtype=bool)
        for batch in entries.to_batches(max_chunksize=AT_ONCE):
            occur[_combinations(batch)] = True
        present = np.flatnonzero(occur)
        places = np.zeros(len(occur), dtype=np.int32)
        places[present] = np.arange(len(present), dtype=np.int32)
        pairs = [(words[n // len(units)], units[n % len(units)]) for n in present.tolist()]
        chosen = choose(kind, list(dict.fromkeys(w for w, _ in pairs)), factors)
        return cls(kind, year, pairs, places, chosen)

    def results(self, entries: pa.Table) -> Results:
        known = self._outcomes  # made before two pieces ask for it at once
        made = abreast(self._made, entries.to_batches(max_chunksize=AT_ONCE))
        frame = pa.Table.from_batches([rows for rows, _ in made], schema=FRAME)
        groups = known.groups(Sums.together(len(known.status), [sums for _, sums in made]))
        whole = int(pc.sum(groups.column("mg_co2e"), min_count=0).as_py())
        if whole > MOST_OF_A_TYPE:
            raise ImplausibleSum(self.kind.name, self.year, whole)
        return Results(frame, groups)

    def _made(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Sums]:
        measured = batch.column("kg_co2eq").is_valid().to_numpy(zero_copy_only=False)
        code, entry = self._codes(self.places[_combinations(batch)], measured)
        # A row per entry already, unless there are several kinds of emissions.
        rows = batch if entry is None else batch.take(pa.array(entry))
        mg = self._milligrams(rows, code)
        return self._batch(rows, code, mg), Sums.of(len(self._outcomes.status), code, mg)

    def _codes(
        self, pair: Codes, measured: npt.NDArray[np.bool_]
    ) -> tuple[Codes, npt.NDArray[np.int64] | None]:
        """Of each result its place in the lists, and its entry."""
        kinds, last = len(self.chosen), self._outcomes.last
        if kinds == 1:
            return np.where(measured, np.int32(last), pair), None
        codes = np.asarray(pair[:, None] * kinds + np.arange(kinds), dtype=np.int32)
        codes[measured, 0] = last
        there = np.ones(codes.shape, dtype=bool)
        there[measured, 1:] = False  # a measured mass takes the place of everything calculated
        return codes[there], np.flatnonzero(there) // kinds

    def _milligrams(self, entries: pa.RecordBatch, code: Codes) -> npt.NDArray[np.int64]:
        """Rounded, halves away from zero. Where a result has no mass it is some number."""
        with np.errstate(over="ignore", invalid="ignore"):
            mass = entries.column("quantity").to_numpy() * self._outcomes.rate[code]
            measured = np.flatnonzero(code == self._outcomes.last)
            if len(measured):
                kg = entries.column("kg_co2eq").take(pa.array(measured))
                mass[measured] = kg.to_numpy() * 1e6
        mass = np.fmax(np.fmin(mass, _BEYOND), -_BEYOND)
        whole = np.rint(mass)
        halves = np.abs(mass - whole) == 0.5  # which `rint` rounds to the even neighbour
        if halves.any():
            whole[halves] = np.trunc(mass[halves]) + np.copysign(1, mass[halves])
        made: npt.NDArray[np.int64] = whole.astype(np.int64)
        return made

    def _batch(self, entries: pa.RecordBatch, code: Codes, mg: npt.NDArray[np.int64]) -> pa.RecordBatch:
        known = self._outcomes
        has_mass = known.has_mass[code]
        self._check_size(entries, mg, has_mass)
        none = np.zeros(len(code), dtype=np.uint8)
        without_factor = ~known.has_factor[code]
        columns = [
            encoded(none, known.years),
            encoded(none, known.types),
            entries.column("entry_key"),
            encoded(known.emission[code], known.emissions),
            entries.column("unit_id"),
            encoded(known.status[code], known.statuses),
            pa.array(mg, pa.int64(), mask=None if has_mass.all() else ~has_mass),
            encoded(known.factor[code], known.factors, without_factor),
            encoded(known.version[code], known.versions, without_factor),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=FRAME)

    @cached_property
    def _outcomes(self) -> Outcomes:
        return Outcomes.of(self.kind, self.year, self.pairs, self.chosen)

    def _check_size(self, entries: pa.RecordBatch, mg: Any, has_mass: Any) -> None:
        for place in np.flatnonzero(((mg > MOST) | (mg < -MOST)) & has_mass)[:1].tolist():
            raise ImplausibleMass(self.kind.name, entries.column("entry_key")[place].as_py(), int(mg[place]))


def _encoded_words(entries: pa.Table) -> pa.Table:
    """With one list for each column of words."""
    for name in _WORDS:
        column = entries.column(name)
        numbered = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        place = entries.schema.get_field_index(name)
        entries = entries.set_column(place, name, numbered.unify_dictionaries())
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

"""From entries and factors to masses: one query per type, whole milligrams per row.

The query answers in numbers only: which words and unit an entry has, and its masses. What follows from these,
the kind of emissions, the status, the factor, is looked up in lists of a few dozen, and stays a list and
numbers into it (Arrow's dictionaries): ten million results are 400 MB instead of more than a gigabyte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from domain.carbon.catalogue import EntryType
from domain.carbon.choice import Choice, Factor, choose
from domain.carbon.quantities import factor_unit, to_milligrams
from domain.carbon.quantities import unit as quantity_unit
from domain.carbon.tables import EMISSIONS
from domain.shared.compute import packaged, query
from domain.shared.error import InvalidInput

MOST = 9_007_199_254_740_992
"""Milligrams one result may have: nine million tonnes. What is more, is a mistake in an amount or a factor;
and beyond it doubles no longer know whole milligrams."""
MOST_OF_A_TYPE = 100_000_000_000_000_000
"""Milligrams all results of a type and year may have: a hundred million tonnes. Each may be plausible by
itself, and their sums, of all types together, have to fit into the tables."""

_STATUS = ("matched", "unmatched", "overridden")
_MASS = (
    "CAST(round(greatest(least(CASE WHEN e.kg_co2eq IS NULL THEN e.quantity * c.rate_{n} "
    "ELSE e.kg_co2eq * 1e6 END, 9.2e18), -9.2e18)) AS BIGINT) AS mg_{n}"
)


def distinct_pairs(entries: str, where: str = "true") -> str:
    """SQL: the pairs of words and unit that entries have."""
    return f"SELECT DISTINCT classification, unit FROM {entries} WHERE {where} ORDER BY ALL"


def emissions(kind: EntryType, entries: pa.Table, factors: pa.Table) -> pa.Table:
    """What the entries of one type and year cause, with the factors of that year.

    `entries` needs the columns year, entry_key, unit_id, quantity, unit, classification, kg_co2eq.
    """
    year = entries.column("year")[0].as_py() if entries.num_rows else 0
    pairs = query(distinct_pairs("entries"), {"entries": entries})
    calculation = Calculation.of(kind, year, pairs, factors)
    found = query(calculation.sql("entries"), {"entries": entries, "choices": calculation.choices})
    return calculation.frame(found).cast(EMISSIONS.schema)


@dataclass(frozen=True)
class Calculation:
    """How the entries of one type and year are calculated: everything but the entries."""

    kind: EntryType
    year: int
    pairs: list[tuple[str, str]]
    """Of words and unit."""
    chosen: Mapping[str, Choice]

    @classmethod
    def of(cls, kind: EntryType, year: int, pairs: pa.Table, factors: pa.Table) -> Calculation:
        """`pairs`: what `distinct_pairs` finds of the same entries."""
        words, units = (pairs.column(name).to_pylist() for name in ("classification", "unit"))
        chosen = choose(kind, list(dict.fromkeys(words)), factors)
        return cls(kind, year, list(zip(words, units, strict=True)), chosen)

    def sql(self, entries: str, where: str = "true") -> str:
        """The query over the entries and `choices`; `frame` makes its answer results."""
        masses = ", ".join(_MASS.format(n=n) for n in range(len(self.chosen)))
        return packaged(__file__, "emissions").format(entries=entries, where=where, masses=masses)

    @property
    def choices(self) -> pa.Table:
        """Of each pair the milligrams of one unit, by kind of emissions: converted once."""
        sizes = {name: quantity_unit(name) for name in dict.fromkeys(unit for _, unit in self.pairs)}
        rates: dict[tuple[str, str], Any] = {}

        def rate(factor: Factor | None, unit: str) -> float | None:
            if factor is None:
                return None
            if (factor.unit, unit) not in rates:
                rates[factor.unit, unit] = to_milligrams(factor_unit(factor.unit), sizes[unit])
            return float(rates[factor.unit, unit](factor.value))

        columns = {
            "classification": pa.array([words for words, _ in self.pairs], pa.string()),
            "unit": pa.array([unit for _, unit in self.pairs], pa.string()),
            "pair": pa.array(range(len(self.pairs)), pa.int32()),
        }
        for n, choice in enumerate(self.chosen.values()):
            of_pairs = [rate(choice[words], unit) for words, unit in self.pairs]
            columns[f"rate_{n}"] = pa.array(of_pairs, pa.float64())
        return pa.table(columns)

    def frame(self, found: pa.Table) -> pa.Table:
        """The results, a row per entry and kind of emissions, in the order of the entries."""
        units = found.column("unit_id").dictionary_encode()
        found = found.set_column(found.schema.get_field_index("unit_id"), "unit_id", units)
        return pa.Table.from_batches(self._results(found), schema=_FRAME)

    def _results(self, found: pa.Table) -> Iterator[pa.RecordBatch]:
        whole = 0.0
        for batch in found.to_batches():
            pair, measured = _numbers(batch.column("pair"))
            code, entry = self._codes(pair, measured)
            masses = [batch.column(f"mg_{n}").to_numpy(zero_copy_only=False) for n in range(len(self.chosen))]
            # A row per entry already, unless there are several kinds of emissions.
            mg = masses[0] if entry is None else np.stack(masses, axis=1).ravel()[entry]
            if entry is not None:
                batch = batch.take(pa.array(entry // len(masses)))  # noqa: PLW2901
            whole += float(np.sum(mg, where=self._lists.has_mass[code], dtype=np.float64))
            yield self._batch(batch, code, mg)
        if whole > MOST_OF_A_TYPE:
            raise ImplausibleSum(self.kind.name, self.year, whole)

    def _codes(
        self, pair: _Codes, measured: npt.NDArray[np.bool_]
    ) -> tuple[_Codes, npt.NDArray[np.int64] | None]:
        """Of each result its place in the lists, and where in entries × kinds it stands."""
        kinds, last = len(self.chosen), len(self.pairs) * len(self.chosen)
        if kinds == 1:
            return np.where(measured, np.int32(last), pair).astype(np.int32, copy=False), None
        codes = np.asarray(pair[:, None] * kinds + np.arange(kinds), dtype=np.int32)
        codes[measured, 0] = last
        there = np.ones(codes.shape, dtype=bool)
        there[measured, 1:] = False  # a measured mass takes the place of everything calculated
        return codes[there], np.flatnonzero(there)

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

    @classmethod
    def of(cls, one: Calculation) -> _Lists:
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
        )


def _encoded(numbers: Any, words: pa.Array, mask: Any = None) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=mask), words)


def _numbers(values: pa.Array) -> tuple[_Codes, npt.NDArray[np.bool_]]:
    """The numbers, and where there is none."""
    missing = values.is_null().to_numpy(zero_copy_only=False)
    return values.fill_null(0).to_numpy(zero_copy_only=False), missing


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

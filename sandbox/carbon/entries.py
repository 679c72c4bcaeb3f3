"""Data entries of one type and year as columns, drawn whole: no loop over rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sandbox.carbon.types import Amount, SampleType, Weights

MEASURED = 0.004
"""Rows whose mass was measured; half of them have no amount then."""
EMPTY = 0.02
"""Numbers left to their default."""
_NOTES = {
    "": 0.95,
    "estimate": 0.03,
    'see "invoice", corrected': 0.01,
    "Rückreise über Genève; 2 Gäste": 0.01,
}
_SIZES: Mapping[str, float] = {
    "m": 0.001,
    "mi": 1.609344,
    "nmi": 1.852,
    "MWh": 1e3,
    "MJ": 1 / 3.6,
    "GJ": 1e3 / 3.6,
    "g": 0.001,
    "t": 1e3,
    "lb": 0.45359237,
    "hl": 100,
    "min": 1 / 60,
    "day": 24,
    "dozen": 12,
    "kCHF": 1e3,
    "token": 0.001,
    "Mtoken": 1e3,
}
"""Units other than those their types are counted in, in these."""
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


def entries(name: str, kind: SampleType, year: int, count: int, units: Sequence[str], seed: int) -> pa.Table:
    """The rows of a file, cells as they would be written. Each file is drawn by itself: whether others are
    written changes nothing of it."""
    rng = np.random.default_rng([seed, year, crc32(name.encode())])
    places = _places(list(kind.units.values()), count, rng)
    measured = rng.random(count) < MEASURED
    without = measured & (rng.random(count) < 0.5)
    return pa.table(
        {
            "year": pa.array(np.full(count, year, dtype=np.int32)),
            "data_entry_type": _chosen([name], np.zeros(count, dtype=np.int64)),
            "entry_id": _ids(name, year, count),
            "unit_id": _owners(units, count, rng),
            kind.amount.column: pa.array(_amounts(kind.amount, list(kind.units), places, rng), mask=without),
            "unit": _units(list(kind.units), places, rng),
            **{
                column: _numbers(1 + rng.poisson(mean - 1, count), rng)
                for column, mean in kind.counts.items()
            },
            **{column: _numbers(rng.integers(*ends, count), rng) for column, ends in kind.days.items()},
            **{column: _numbers(_shares(whole, count, rng), rng) for column, whole in kind.shares.items()},
            **{column: _words(weights, count, rng) for column, weights in kind.words.items()},
            "kg_co2eq": pa.array(np.round(rng.lognormal(4.0, 1.5, count), 3), mask=~measured),
            "note": _words(_NOTES, count, rng),
        }
    )


def _ids(name: str, year: int, count: int) -> pa.Array:
    numbers = pc.utf8_lpad(pc.cast(pa.array(np.arange(1, count + 1)), pa.string()), 6, "0")
    return pc.binary_join_element_wise(f"{name}-{year}-", numbers, "")


def _owners(units: Sequence[str], count: int, rng: np.random.Generator) -> pa.Array:
    """Few units have most of the rows."""
    weights = 1 / np.arange(3, len(units) + 3)
    order = rng.permutation(len(units))
    return _chosen([units[place] for place in order], _places(weights, count, rng))


def _amounts(amount: Amount, units: Sequence[str], places: Places, rng: np.random.Generator) -> Floats:
    """Each in its row's unit; larger units have more digits. What is counted is at least one."""
    drawn = rng.lognormal(np.log(amount.median), amount.spread, len(places))
    drawn = np.clip(drawn, amount.least, amount.most)
    made = np.empty(len(places))
    for place, unit in enumerate(units):
        size = _SIZES.get(unit, 1.0)
        digits = max(amount.digits + round(np.log10(size)), 0)
        here = places == place
        made[here] = np.maximum(np.round(drawn[here] / size, digits), 10.0**-digits)
    return made


def _units(units: Sequence[str], places: Places, rng: np.random.Generator) -> pa.Array:
    """Half of the rows leave the unit that the template has unsaid."""
    unsaid = (places == 0) & (rng.random(len(places)) < 0.5)
    return _chosen([*units, ""], np.where(unsaid, len(units), places))


def _shares(whole: float, count: int, rng: np.random.Generator) -> Floats:
    return np.where(rng.random(count) < whole, 1.0, rng.integers(1, 20, count) / 20)


def _numbers(values: npt.NDArray[np.generic], rng: np.random.Generator) -> pa.Array:
    return pa.array(values, mask=rng.random(len(values)) < EMPTY)


def _words(weights: Weights, count: int, rng: np.random.Generator) -> pa.Array:
    return _chosen(list(weights), _places(list(weights.values()), count, rng))


def _places(weights: Sequence[float] | Floats, count: int, rng: np.random.Generator) -> Places:
    bounds = np.cumsum(weights)
    found = np.searchsorted(bounds / bounds[-1], rng.random(count), side="right")
    return np.minimum(found, len(bounds) - 1)


def _chosen(words: Sequence[str], places: Places) -> pa.Array:
    return pa.array(words, pa.string()).take(pa.array(places))

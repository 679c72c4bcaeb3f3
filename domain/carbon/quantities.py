"""Units of quantities and of factors, and what one is in another. Exact: every ratio is a fraction.

Money is not converted: an amount in another currency needs a rate, and a rate is data with a date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache

from domain.shared.error import InvalidInput

_DIMENSIONS: Mapping[str, Mapping[str, str]] = {
    "mass": {"kg": "1", "g": "0.001", "mg": "0.000001", "t": "1000", "lb": "0.45359237"},
    "distance": {"km": "1", "m": "0.001", "mi": "1.609344", "nmi": "1.852"},
    "energy": {
        "kWh": "1",
        "Wh": "0.001",
        "MWh": "1000",
        "GWh": "1000000",
        "MJ": "10/36",
        "GJ": "10000/36",
        "TJ": "10000000/36",
    },
    "volume": {"l": "1", "ml": "0.001", "hl": "100", "m3": "1000"},
    "area": {"m2": "1", "ha": "10000", "km2": "1000000"},
    "time": {"h": "1", "min": "1/60", "day": "24"},
    "count": {"piece": "1", "dozen": "12"},
    "night": {"night": "1"},
    "meal": {"meal": "1"},
    "tokens": {"token": "1", "ktoken": "1000", "Mtoken": "1000000"},
    "CHF": {"CHF": "1", "kCHF": "1000"},
    "EUR": {"EUR": "1", "kEUR": "1000"},
    "USD": {"USD": "1", "kUSD": "1000"},
    "GBP": {"GBP": "1", "kGBP": "1000"},
}

_OTHER_NAMES: Mapping[str, str] = {
    "litre": "l",
    "litres": "l",
    "liter": "l",
    "liters": "l",
    "tonne": "t",
    "tonnes": "t",
    "pcs": "piece",
    "pieces": "piece",
    "nights": "night",
    "meals": "meal",
    "tokens": "token",
    "mile": "mi",
    "miles": "mi",
    "hour": "h",
    "hours": "h",
    "days": "day",
}
"""Spellings people write, case aside."""

_CASE_MATTERS = frozenset({"m", "mg", "ml"})
"""Units that are others in capitals: Mg is a tonne, ML a million litres, M a nautical mile."""

_WIDE = Context(prec=60)
"""Far more digits than a value and a ratio have, and far faster than fractions."""
_FACTOR = re.compile(r"^(kg|g|mg|t)\s*(?:co2(?:e|eq|-eq)?)?\s*(?:/|per)\s*(.+)$", re.IGNORECASE)


@dataclass(frozen=True)
class Unit:
    name: str
    dimension: str
    size: Fraction
    """In the first unit of its dimension."""


@dataclass(frozen=True)
class FactorUnit:
    """What a factor's number counts: `mass` of CO₂e for one `per`."""

    mass: Unit
    per: Unit

    def __str__(self) -> str:
        return f"{self.mass.name}/{self.per.name}"


@cache
def _by_name() -> Mapping[str, Unit]:
    return {
        name: Unit(name, dimension, Fraction(size))
        for dimension, units in _DIMENSIONS.items()
        for name, size in units.items()
    }


@cache
def _by_folded_name() -> Mapping[str, Unit]:
    """By name without case: MJ and mj are one."""
    names = {**{name: name for name in _by_name()}, **_OTHER_NAMES}
    return {other.casefold(): _by_name()[name] for other, name in names.items()}


def unit(text: str) -> Unit:
    """Return the unit that a text names."""
    word = text.strip().replace("\N{SUPERSCRIPT THREE}", "3").replace("\N{SUPERSCRIPT TWO}", "2")
    if (exact := _by_name().get(word)) is not None:
        return exact
    folded = word.casefold()
    if folded in _CASE_MATTERS:
        raise InvalidInput(
            f"{text!r} may be {folded} or what capitals make of it",
            reason_code="ambiguous_unit",
            remedy=f"write {folded}, or the amount in another unit",
        )
    if (found := _by_folded_name().get(folded)) is not None:
        return found
    raise InvalidInput(
        f"{text!r} is no unit we know", reason_code="unknown_unit", remedy=f"one of {', '.join(_by_name())}"
    )


def factor_unit(text: str) -> FactorUnit:
    """`kg/kWh`, `kg CO2e per kWh`, `g/km`, `t/MWh`."""
    match = _FACTOR.match(text.strip().replace("₂", "2"))
    if match is None:
        raise InvalidInput(
            f"{text!r} is no unit of a factor",
            reason_code="unknown_unit",
            remedy="a mass of CO2e for one unit of the quantity: kg/kWh, g/km, kg CO2e per CHF",
        )
    return FactorUnit(unit(match[1]), unit(match[2]))


def of_dimension(name: str) -> tuple[str, ...]:
    """The units that convert into `name`, itself first."""
    dimension = unit(name).dimension
    return (name, *(other for other in _DIMENSIONS[dimension] if other != name))


def to_milligrams(factor: FactorUnit, quantity: Unit) -> Callable[[float], float]:
    """From a factor's value to the milligrams of CO₂e of one `quantity` unit, all conversions in it.

    The value counts as it was written, 0.1 and not the double next to it, and the result is rounded once: so
    0.1 kg/km and 100 g/km are the same to the last bit.
    """
    if quantity.dimension != factor.per.dimension:
        raise InvalidInput(
            f"a factor per {factor.per.name} does not apply to {quantity.name}", reason_code="unit_mismatch"
        )
    ratio = factor.mass.size * 1_000_000 * quantity.size / factor.per.size
    times, by = Decimal(ratio.numerator), Decimal(ratio.denominator)

    def convert(value: float) -> float:
        return float(_WIDE.divide(_WIDE.multiply(Decimal(repr(value)), times), by))

    return convert

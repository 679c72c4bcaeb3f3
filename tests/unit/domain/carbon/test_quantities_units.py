"""Units: what people write, and what one is in another, to the last bit."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.carbon.quantities import factor_unit, of_dimension, to_milligrams, unit
from domain.shared.error import InvalidInput

SIZES = {
    "mass": "kg 1, g 1/1000, mg 1/1000000, t 1000, lb 45359237/100000000",
    "distance": "km 1, m 1/1000, mi 1609344/1000000, nmi 1852/1000",
    "energy": "kWh 1, Wh 1/1000, MWh 1000, GWh 1000000, MJ 5/18, GJ 2500/9, TJ 2500000/9",
    "volume": "l 1, ml 1/1000, hl 100, m3 1000",
    "area": "m2 1, ha 10000, km2 1000000",
    "time": "h 1, min 1/60, day 24",
    "count": "piece 1, dozen 12",
    "night": "night 1",
    "meal": "meal 1",
    "tokens": "token 1, ktoken 1000, Mtoken 1000000",
    "CHF": "CHF 1, kCHF 1000",
    "EUR": "EUR 1, kEUR 1000",
    "USD": "USD 1, kUSD 1000",
    "GBP": "GBP 1, kGBP 1000",
}
TABLE = {
    name: (dimension, Fraction(size))
    for dimension, line in SIZES.items()
    for name, size in (each.split() for each in line.split(", "))
}
VALUES = st.floats(0, 1e9, allow_subnormal=False)


def test_every_unit_is_of_its_kind_and_has_its_exact_size() -> None:
    for name, (dimension, size) in TABLE.items():
        assert (unit(name).name, unit(name).dimension, unit(name).size) == (name, dimension, size)
        assert set(of_dimension(name)) == {n for n, (d, _) in TABLE.items() if d == dimension}
        assert of_dimension(name)[0] == name


@given(VALUES, st.sampled_from(["kg", "g", "mg", "t"]), st.sampled_from(sorted(TABLE)), st.data())
def test_a_factor_in_another_unit_is_exact_and_rounded_once(
    value: float, mass: str, per: str, data: st.DataObject
) -> None:
    quantity = data.draw(st.sampled_from(of_dimension(per)))
    exact = Fraction(repr(value)) * TABLE[mass][1] * 1_000_000 * TABLE[quantity][1] / TABLE[per][1]
    assert to_milligrams(factor_unit(f"{mass}/{per}"), unit(quantity))(value) == float(exact)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        *((" km ", "km"), ("KM", "km"), ("kwh", "kWh"), ("KWH", "kWh"), ("mwh", "MWh"), ("gj", "GJ")),
        *(
            ("m³", "m3"),
            ("M3", "m3"),
            ("km²", "km2"),
            ("Litres", "l"),
            ("L", "l"),
            ("tonne", "t"),
            ("T", "t"),
        ),
        *(("chf", "CHF"), ("pcs", "piece"), ("Miles", "mi"), ("hours", "h"), ("tokens", "token"), ("G", "g")),
    ],
)
def test_the_spellings_of_people_are_known(written: str, name: str) -> None:
    assert unit(written).name == name


@pytest.mark.parametrize("written", ["Mg", "MG", "mG", "ML", "Ml", "M"])
def test_a_unit_that_capitals_make_another_is_refused(written: str) -> None:
    """A megagram is a tonne, and not the thousandth part of a gram."""
    with pytest.raises(InvalidInput) as refused:
        unit(written)
    assert refused.value.reason_code == "ambiguous_unit"
    assert written in refused.value.message
    assert written.lower() in refused.value.remedy


@pytest.mark.parametrize(
    "written", ["", "kW", "km/h", "1000 km", "pkm", "litre per day", "gallon", "£", "°C"]
)
def test_an_unknown_unit_is_refused_with_those_we_know(written: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        unit(written)
    assert refused.value.reason_code == "unknown_unit"
    assert "kWh" in refused.value.remedy


@pytest.mark.parametrize(
    ("written", "read"),
    [
        *(("kg/kWh", "kg/kWh"), ("kg CO2e per kWh", "kg/kWh"), ("KG CO2-eq / kwh", "kg/kWh")),
        *(("kg CO₂e/kWh", "kg/kWh"), ("gCO2/km", "g/km"), ("t CO2eq per MWh", "t/MWh"), ("kg/kg", "kg/kg")),
        *(("g CO2e / m³", "g/m3"), ("T/GWh", "t/GWh"), ("mg/l", "mg/l")),
    ],
)
def test_the_units_of_factors_are_read(written: str, read: str) -> None:
    assert str(factor_unit(written)) == read


@pytest.mark.parametrize(
    "written", ["", "kg", "kWh/kg", "lb/km", "kg/", "/km", "kg CH4/km", "kg km", "kg/km/h"]
)
def test_what_is_no_unit_of_a_factor_is_refused(written: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        factor_unit(written)
    assert refused.value.reason_code == "unknown_unit"


@pytest.mark.parametrize("written", ["Mg/km", "MG CO2e per kWh", "kg/ML"])
def test_an_ambiguous_unit_of_a_factor_is_refused(written: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        factor_unit(written)
    assert refused.value.reason_code == "ambiguous_unit"


@pytest.mark.parametrize(("per", "quantity"), [("km", "kWh"), ("CHF", "EUR"), ("kg", "l"), ("piece", "meal")])
def test_a_factor_says_nothing_of_another_kind_of_quantity(per: str, quantity: str) -> None:
    """Nor of another currency: its rate is data with a date."""
    with pytest.raises(InvalidInput) as refused:
        to_milligrams(factor_unit(f"kg/{per}"), unit(quantity))
    assert refused.value.reason_code == "unit_mismatch"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_stays_none(value: float) -> None:
    """Whoever multiplies with it must see it: no error here may name the entry."""
    made = to_milligrams(factor_unit("kg/km"), unit("mi"))(value)
    assert repr(made) == repr(value)

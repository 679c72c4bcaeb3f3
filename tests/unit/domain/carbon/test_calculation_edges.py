"""Single rules of the calculation, and what it does at the edges of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from domain.carbon.catalogue import EntryType, catalogue, parse
from domain.carbon.classification import canonical, factor_id
from domain.carbon.emissions import MAX_MG, MAX_MG_OF_TYPE, calculated, emissions, sums_by_decision
from domain.carbon.reports import report_rows, summing
from domain.carbon.tables import EMISSIONS, FACTORS, REPORTS, UNITS
from domain.shared.compute import query
from domain.shared.error import InvalidInput

YEAR = 2025
CATALOGUE = parse("""
modules:
  one:
    title: One
    description: Three keys, all of which fall back.
    types:
      keyed:
        title: Keyed
        description: Three keys
        method: none
        unit: kg
        emissions:
          direct: {scope: 1, category: a}
          upstream: {scope: 3, category: b, optional: true}
        columns:
          mass: {role: amount, example: 1, description: amount}
          a: {role: key, fallback: any, example: x, description: first}
          b: {role: key, fallback: any, example: x, description: second}
          c: {role: key, fallback: "1.0", example: x, description: third}
  two:
    title: Two
    description: Another module.
    types:
      plain:
        title: Plain
        description: No key
        method: none
        unit: kg
        emissions:
          plain: {scope: 2, category: c}
        columns:
          mass: {role: amount, example: 1, description: amount}
""")
KEYED, PLAIN = CATALOGUE.types["keyed"], CATALOGUE.types["plain"]


def factors(*rows: tuple[str, str, Mapping[str, str], float]) -> pa.Table:
    made = [
        {
            "year": YEAR,
            "data_entry_type": kind,
            "emission_type": emission,
            "value": value,
            "unit": "kg/kg",
            "factor_id": factor_id(YEAR, kind, emission, canonical(words)),
            "classification": canonical(words),
            "version": 3,
            "stale": False,
            "last_seen_job_id": 1,
        }
        for kind, emission, words, value in rows
    ]
    return pa.Table.from_pylist(made, schema=FACTORS.schema)


def words(text: str) -> dict[str, str]:
    """`x any 1` as words of a, b and c."""
    return dict(zip("abc", text.split(), strict=True))


def keyed(
    *rows: tuple[str, float], emission: str = "direct"
) -> list[tuple[str, str, Mapping[str, str], float]]:
    return [("keyed", emission, words(text), value) for text, value in rows]


def entries(*rows: Mapping[str, Any]) -> pa.Table:
    made = [
        {
            "year": YEAR,
            "entry_key": number,
            "unit_id": "A",
            "quantity": 1.0,
            "unit": "kg",
            "classification": "{}",
            "kg_co2eq": None,
            **row,
        }
        for number, row in enumerate(rows)
    ]
    fields = ("year", "entry_key", "unit_id", "quantity", "unit", "classification", "kg_co2eq")
    types = (pa.int32(), pa.int64(), pa.string(), pa.float64(), pa.string(), pa.string(), pa.float64())
    return pa.Table.from_pylist(made, schema=pa.schema(list(zip(fields, types, strict=True))))


def results_of(kind: EntryType, rows: pa.Table, known: pa.Table) -> list[tuple[str, str, int | None]]:
    """Kind of emissions, status and milligrams, in the order of the entries."""
    frame = emissions(kind, rows, known).sort_by([("entry_key", "ascending"), ("emission_type", "ascending")])
    assert frame.schema == EMISSIONS.schema
    columns = (frame.column(n).to_pylist() for n in ("emission_type", "status", "mg_co2e"))
    return list(zip(*columns, strict=True))


# Which factor


@pytest.mark.parametrize(
    ("offered", "value"),
    [
        (["x y z", "x y 1", "x any z", "any y z"], 1),
        (["x y 1", "x any z", "any y z", "any any 1"], 1),
        (["x any z", "any y z", "any any 1"], 1),
        (["any y z", "x any 1", "any any z"], 1),
        (["x any 1", "any y 1", "any any z"], 1),
        (["any y 1", "any any z", "any any 1"], 1),
        (["any any z", "any any 1"], 1),
        (["any any 1"], 1),
    ],
)
def test_as_many_words_as_possible_are_kept_and_of_these_the_earlier(offered: list[str], value: int) -> None:
    known = factors(*keyed(*((text, number) for number, text in enumerate(offered, 1))))
    row = {"classification": canonical(words("x y z"))}
    assert results_of(KEYED, entries(row), known) == [("direct", "matched", value * 1_000_000)]


# Which kinds of emissions: more of it in test_emissions_counted.py


def test_a_measured_mass_takes_the_place_of_all_and_needs_no_factor() -> None:
    known = factors(*keyed(("x y z", 1)), *keyed(("x y z", 3), emission="upstream"))
    row = {"classification": canonical(words("x y z")), "kg_co2eq": 1.5}
    for factors_known in (known, factors()):
        [result] = emissions(KEYED, entries(row), factors_known).to_pylist()
        assert (result["emission_type"], result["status"], result["mg_co2e"]) == (
            "direct",
            "overridden",
            1_500_000,
        )
        assert (result["factor_id"], result["factor_version"]) == (None, None)


# Numbers


@pytest.mark.parametrize(
    ("quantity", "milligrams"),
    [(0.0, 0), (0.4e-6, 0), (0.5e-6, 1), (1.5e-6, 2), (2.5e-6, 3), (1e-300, 0), (9e9, 9_000_000_000_000_000)],
)
def test_masses_are_whole_milligrams_halves_rounded_up(quantity: float, milligrams: int) -> None:
    """Nothing is a mass, too: an entry that causes nothing is matched all the same."""
    known = factors(("plain", "plain", {}, 1.0))
    assert results_of(PLAIN, entries({"quantity": quantity}), known) == [("plain", "matched", milligrams)]
    measured = entries({"quantity": 0.0, "kg_co2eq": quantity})
    assert results_of(PLAIN, measured, known) == [("plain", "overridden", milligrams)]


ABSURD = (MAX_MG / 1e6 * 1.001, 1e12, 9.3e18, 1e300, math.inf, -math.inf, -1e300, math.nan)


@pytest.mark.parametrize("quantity", ABSURD)
@pytest.mark.parametrize("column", ["quantity", "kg_co2eq"])
def test_a_mass_beyond_all_measure_is_an_error_that_names_the_entry(column: str, quantity: float) -> None:
    rows = entries({}, {}, {column: quantity})
    with pytest.raises(InvalidInput) as refused:
        emissions(PLAIN, rows, factors(("plain", "plain", {}, 1.0)))
    assert refused.value.reason_code == "implausible_mass"
    assert "entry 2 of plain" in refused.value.message


@pytest.mark.parametrize("column", ["quantity", "kg_co2eq"])
def test_entries_that_are_plausible_one_by_one_and_absurd_together_are_an_error_that_names_the_type(
    column: str,
) -> None:
    """Grams taken for kilograms in a whole file: no table could hold the sum, and no report would be made."""
    rows = entries(*[{column: MAX_MG / 1e6} for _ in range(12)])
    with pytest.raises(InvalidInput) as refused:
        emissions(PLAIN, rows, factors(("plain", "plain", {}, 1.0)))
    assert refused.value.reason_code == "implausible_mass"
    assert "all entries of plain" in refused.value.message


def test_the_sums_of_all_types_at_their_most_fit_into_the_tables() -> None:
    assert len(catalogue().types) * MAX_MG_OF_TYPE < 2**63


def results(*rows: tuple[str, int]) -> pa.Table:
    """Emissions of units in milligrams."""
    made = [
        {
            "year": YEAR,
            "data_entry_type": "plain",
            "entry_key": number,
            "emission_type": "plain",
            "unit_id": unit,
            "status": "matched",
            "mg_co2e": mg,
        }
        for number, (unit, mg) in enumerate(rows)
    ]
    return pa.Table.from_pylist(made, schema=EMISSIONS.schema)


def summed(frame: pa.Table) -> pa.Table:
    return query(summing("emissions"), {"emissions": frame})


def test_sums_are_exact_where_doubles_are_not() -> None:
    odd = 2**53 - 1
    [row] = summed(results(*[("A", odd)] * 1000, ("A", 1))).to_pylist()
    assert row["mg_co2e"] == 1000 * odd + 1


def test_reports_of_sums_that_no_table_can_hold_are_an_error() -> None:
    sums = summed(results(*[(unit, MAX_MG) for unit in "ABC" for _ in range(500)]))
    with pytest.raises(duckdb.Error, match="out of range"):
        report_rows(CATALOGUE, YEAR, sums, units({"A": "", "B": "A", "C": "B"}))


# Trees


def units(parents: Mapping[str, str]) -> pa.Table:
    made = [
        {
            "year": YEAR,
            "institution": "main",
            "unit_id": unit,
            "parent_id": above or None,
            "name": unit,
            "last_seen_job_id": 1,
        }
        for unit, above in parents.items()
    ]
    return pa.Table.from_pylist(made, schema=UNITS.schema)


def totals(masses: Sequence[tuple[str, int]], parents: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """By unit its own and its total mass."""
    rows = report_rows(CATALOGUE, YEAR, summed(results(*masses)), units(parents))
    assert rows.schema == REPORTS.schema
    return {row["unit_id"]: (row["own_mg"], row["total_mg"]) for row in rows.to_pylist()}


def test_a_unit_whose_parent_nobody_knows_stands_on_top() -> None:
    assert totals([("A", 1), ("B", 2)], {"A": "gone", "B": "A"}) == {"A": (1, 3), "B": (2, 2)}


def test_entries_of_a_unit_outside_the_tree_are_not_lost() -> None:
    assert totals([("A", 1), ("unknown", 2)], {"A": ""}) == {"A": (1, 1), "unknown": (2, 2)}
    assert totals([("unknown", 2)], {}) == {"unknown": (2, 2)}


def test_a_circle_made_by_hand_ends_and_counts_everything_once() -> None:
    circle = {"A": "C", "B": "A", "C": "B", "D": "C", "E": "E"}
    found = totals([("A", 1), ("B", 2), ("C", 4), ("D", 8), ("E", 16)], circle)
    assert found == {"A": (1, 15), "B": (2, 15), "C": (4, 15), "D": (8, 8), "E": (16, 16)}


# What it comes to


@pytest.mark.parametrize("count", [0, 1, 100_000])
def test_what_a_calculation_comes_to_is_what_its_rows_add_up_to(count: int) -> None:
    """To the last milligram, though masses are as large as they may be and of either sign."""
    luck = np.random.default_rng(count)
    text = ["x any 1", "y any 1", "z any 1"]
    rows = pa.table(
        {
            "year": pa.array(np.full(count, YEAR), pa.int32()),
            "entry_key": np.arange(count),
            "unit_id": pa.array(["A", "B"]).take(pa.array(luck.integers(0, 2, count))),
            "quantity": (luck.random(count) - 0.5) * 1.99 * MAX_MG / 1e6,
            "unit": pa.array(["kg", "g"]).take(pa.array(luck.integers(0, 2, count))),
            "classification": pa.array([canonical(words(t)) for t in text]).take(
                pa.array(luck.integers(0, 3, count))
            ),
            "kg_co2eq": pa.array((luck.random(count) - 0.5) * 1e9, mask=luck.random(count) < 0.9),
        }
    )
    upstream = keyed(("x any 1", 0.25), emission="upstream")
    known = factors(*keyed(("x any 1", 1.0), ("y any 1", 0.5)), *upstream)
    found = calculated(KEYED, YEAR, rows, known)
    wanted: dict[tuple[Any, ...], list[int]] = {}
    names = ("emission_type", "status", "factor_id", "factor_version", "mg_co2e")
    for *group, mg in zip(*(found.frame[name].to_pylist() for name in names), strict=True):
        so_far = wanted.setdefault(tuple(group), [0, 0])
        wanted[tuple(group)] = [so_far[0] + 1, so_far[1] + (mg or 0)]
    found_sums: dict[tuple[Any, ...], list[int]] = {}
    for row in sums_by_decision(found.sums).to_pylist():
        group = tuple(row[name] for name in names[:4])
        assert (row["mg_co2e"] is None) == (row["status"] == "unmatched")
        so_far = found_sums.setdefault(group, [0, 0])
        found_sums[group] = [so_far[0] + row["results"], so_far[1] + int(row["mg_co2e"] or 0)]
    assert found_sums == wanted

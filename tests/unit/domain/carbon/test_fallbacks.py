"""Fallback factors are named: which entries, counted as what, how much of the total."""

from __future__ import annotations

import pyarrow as pa

from domain.carbon.catalogue import catalogue
from domain.carbon.fallbacks import Fallback, factor_gaps, fallback_note, is_fallback

CH, FR, WORLD = '{"country":"CH"}', '{"country":"FR"}', '{"country":"world"}'
TRAIN = catalogue().type("train")
ELECTRICITY = catalogue().type("electricity")
ENTRIES = pa.schema([("classification", pa.string()), ("kg_co2eq", pa.float64())])


def entries(*words: str, measured: str = "") -> pa.Table:
    rows = [{"classification": one, "kg_co2eq": None} for one in words]
    rows += [{"classification": measured, "kg_co2eq": 1.0}] if measured else []
    return pa.Table.from_pylist(rows, ENTRIES)


def factors(*of: tuple[str, str, str]) -> pa.Table:
    """Of (type, kind of emissions, classification)."""
    rows = [
        {
            "data_entry_type": kind,
            "emission_type": emission,
            "classification": words,
            "factor_id": number,
            "version": 1,
            "value": 1.0,
            "unit": "kg/km",
        }
        for number, (kind, emission, words) in enumerate(of)
    ]
    return pa.Table.from_pylist(rows)


def test_factor_gaps__of_entries__are_what_the_choice_of_factors_leaves_open():
    known = factors(("train", "train", CH), ("train", "train", WORLD))
    found = factor_gaps(TRAIN, 2025, entries(FR, FR, CH, '{"country":"ch"}', measured=FR), known)
    assert found.fallbacks == (Fallback("train", FR, WORLD, entries=2),)
    assert (found.rows, found.unmatched) == (5, {})
    [note] = found.notes
    assert note.startswith("2 of 5 rows of 2025")
    assert note.endswith("country FR as world (2)")


def test_factor_gaps__no_factor_at_all__are_counted_apart():
    found = factor_gaps(TRAIN, 2025, entries(FR, CH, CH), factors(("train", "train", CH)))
    assert (found.fallbacks, found.unmatched) == ((), {FR: 1})
    assert len(list(found.notes)) == 1


def test_factor_gaps__two_kinds_of_emissions__name_a_row_once():
    grid, solar = '{"mix":"grid"}', '{"mix":"solar"}'
    known = factors(
        ("electricity", "electricity", solar),
        ("electricity", "electricity", grid),
        ("electricity", "electricity_upstream", grid),
    )
    assert factor_gaps(ELECTRICITY, 2025, entries(solar), known).fallbacks == (
        Fallback("electricity", solar, grid, entries=1),
    )
    without_solar = known.slice(1)
    found = factor_gaps(ELECTRICITY, 2025, entries(solar), without_solar)
    assert next(iter(found.notes)).startswith("1 of 1 rows")


def test_fallback__of_words__names_those_that_differ():
    named = Fallback("hotel", '{"country":"FR","stars":"4"}', '{"country":"world","stars":"4"}', 1)
    assert named.instead == "country FR as world, stars 4"
    assert Fallback("hotel", "{}", WORLD, 1).instead == "country not given as world"
    assert is_fallback(FR, WORLD)
    assert not is_fallback('{"country":"ch"}', CH)


def test_fallback_note__of_many_kinds__has_the_sums():
    found = [Fallback("train", f'{{"country":"C{n}"}}', WORLD, 1, 1, 10**9) for n in range(5)]
    note = fallback_note(found, 50, 20 * 10**9)
    assert note.startswith("5 of 50 results, 5.000 t (25.0 % of the total)")
    assert fallback_note([], 50, 1) == ""
    assert "%" not in fallback_note(found[:1], 1, 0)

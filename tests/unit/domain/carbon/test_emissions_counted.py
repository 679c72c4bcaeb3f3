"""Which kinds of emissions an entry has results for: all that the catalogue names, but for optional ones."""

from __future__ import annotations

import csv
import io
from itertools import product

import pyarrow as pa
import pytest

from domain.carbon.catalogue import EntryType, catalogue, parse
from domain.carbon.emissions import emissions
from domain.carbon.tables import FACTORS
from domain.shared.error import InvalidInput
from services.carbon.template import template

TEXT = """
modules:
  one:
    title: One
    description: One
    types:
      power:
        title: Power
        description: Power
        method: none
        unit: kWh
        emissions:
          direct: {{scope: 2, category: a{first}}}
          upstream: {{scope: 3, category: b{second}}}
        columns: {{amount: {{role: amount, description: how much, example: 1}}}}
"""


def power(*, second: str = "", first: str = "") -> EntryType:
    return parse(TEXT.format(first=first, second=second)).type("power")


def results(kind: EntryType, *spoken: str, measured: float | None = None) -> list[tuple[str, str]]:
    """Kinds of emissions with status, of one entry; the factors of the year speak of `spoken`."""
    entries = {
        "year": pa.array([2024], pa.int32()),
        "entry_key": pa.array([1]),
        "unit_id": ["A"],
        "quantity": [1.0],
        "unit": [kind.unit],
        "classification": ["{}"],
        "kg_co2eq": pa.array([measured], pa.float64()),
    }
    factor = {
        "year": 2024,
        "data_entry_type": kind.name,
        "value": 1.0,
        "unit": f"kg/{kind.unit}",
        "classification": "{}",
        "version": 1,
        "stale": False,
        "last_seen_job_id": 1,
    }
    known = [factor | {"emission_type": name, "factor_id": n} for n, name in enumerate(spoken)]
    frame = emissions(kind, pa.table(entries), pa.Table.from_pylist(known, schema=FACTORS.schema))
    assert all((row["mg_co2e"] is None) == (row["status"] == "unmatched") for row in frame.to_pylist())
    return sorted((row["emission_type"], row["status"]) for row in frame.to_pylist())


def test_a_kind_without_any_factor_in_the_year_is_unmatched_and_no_silent_zero() -> None:
    assert results(power(), "direct") == [("direct", "matched"), ("upstream", "unmatched")]
    assert results(power(), "upstream") == [("direct", "unmatched"), ("upstream", "matched")]
    assert results(power()) == [("direct", "unmatched"), ("upstream", "unmatched")]


def test_an_optional_kind_is_counted_in_years_that_have_a_factor_for_it() -> None:
    kind = power(second=", optional: true")
    assert results(kind, "direct") == [("direct", "matched")]
    assert results(kind, "direct", "upstream") == [("direct", "matched"), ("upstream", "matched")]
    assert results(kind) == [("direct", "unmatched")]


@pytest.mark.parametrize("kind", catalogue().types.values(), ids=lambda kind: kind.name)
def test_whatever_a_year_has_factors_for_no_kind_of_the_catalogue_is_passed_over(kind: EntryType) -> None:
    names = [e.name for e in kind.emissions]
    for has in product([True, False], repeat=len(names)):
        spoken = [name for name, there in zip(names, has, strict=True) if there]
        found = {name for name, _ in results(kind, *spoken)}
        assert found == {e.name for e in kind.emissions if e.name in spoken or not e.optional}


def test_whether_it_is_optional_is_part_of_the_rules() -> None:
    assert power().rules != power(second=", optional: true").rules


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"first": ", optional: true"}, "its first emission type is missing or optional"),
        ({"second": ", optional: sometimes"}, "and optional true or false"),
        ({"second": ", optionel: true"}, "unexpected keyword argument .optionel."),
    ],
)
def test_a_catalogue_that_says_it_wrongly_is_refused(rows: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        power(**rows)


def test_the_template_of_factors_leaves_nothing_unmatched() -> None:
    rows = list(csv.DictReader(io.StringIO(template(catalogue(), "factors", 2025))))
    spoken = {(row["data_entry_type"], row["emission_type"]) for row in rows}
    assert spoken == {
        (t.name, e.name) for t in catalogue().types.values() for e in t.emissions if not e.optional
    }

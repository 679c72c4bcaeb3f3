"""Factors over time: what an upload makes of the factors a year has."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.carbon.catalogue import catalogue
from domain.carbon.emissions import emissions
from domain.carbon.factors import Origin, YearOfFactors, changed_types, digests, merged
from domain.carbon.intake.factors_file import read_factors

YEAR = 2025
BEGAN = datetime(2026, 1, 5, 8, tzinfo=UTC)
HEADER = ("data_entry_type", "emission_type", "classification", "value", "unit", "source")


def line(
    kind: str = "road",
    words: Mapping[str, Any] | str | None = None,
    value: float | str = 0.2,
    unit: str = "kg/km",
    source: str = "somebody",
) -> tuple[str, ...]:
    if words is None:
        words = {"vehicle": "taxi"}
    text = words if isinstance(words, str) else json.dumps(words)
    return (kind, "", text, str(value), unit, source)


def incoming(*lines: Sequence[str]) -> pa.Table:
    text = io.StringIO()
    csv.writer(text).writerows([HEADER, *lines])
    parsed = read_factors(io.BytesIO(text.getvalue().encode()), catalogue(), year=YEAR)
    assert not parsed.problem_count, [str(p) for p in parsed.problems]
    return parsed.frame


def origin(number: int) -> Origin:
    return Origin(100 + number, f"file{number}", BEGAN + timedelta(hours=number))


def after(*uploads: Sequence[Sequence[str]], known: YearOfFactors | None = None) -> YearOfFactors:
    """A year after these uploads, one after the other."""
    known = known or YearOfFactors.empty()
    for number, lines in enumerate(uploads, 1):
        known = merged(YEAR, known, incoming(*lines), origin(number))
    return known


def only(table: pa.Table) -> dict[str, Any]:
    [row] = table.to_pylist()
    return dict(row)


# One factor


def test_a_new_factor_is_version_one_and_fresh() -> None:
    year = after([line()])
    row = only(year.factors)
    assert (row["version"], row["stale"], row["last_seen_job_id"], row["source"]) == (
        1,
        False,
        101,
        "somebody",
    )
    version = only(year.versions)
    assert (version["version"], version["file"], version["line"]) == (1, "file1", 2)
    assert (version["valid_from"], version["valid_to"]) == (origin(1).at, None)
    assert version["factor_id"] == row["factor_id"]


@pytest.mark.parametrize(
    "words",
    [
        '{"cabin": "first", "haul": "long"}',
        '{"haul":"long","cabin":"first"}',
        '{ "HAUL" : " long " , "Cabin":"FIRST" }',
        '{"cabin": "first", "haul": "long", "nothing": null}',
    ],
)
def test_the_same_identity_in_other_words_keeps_id_and_version(words: str) -> None:
    def flight(text: str) -> tuple[str, ...]:
        return ("plane", "flight_co2", text, "0.3", "kg/km", "somebody")

    first = after([flight('{"cabin":"first","haul":"long"}')])
    again = merged(YEAR, first, incoming(flight(words)), origin(2))
    assert only(again.factors)["factor_id"] == only(first.factors)["factor_id"]
    assert only(again.factors)["version"] == 1
    assert again.versions == first.versions
    assert changed_types(first.factors, again.factors) == []


@pytest.mark.parametrize("other", [{"value": 0.25}, {"unit": "g/km"}])
def test_another_value_or_unit_is_the_next_version_of_the_same_factor(other: dict[str, Any]) -> None:
    first = after([line()])
    year = after([line()], [line(**other)])
    assert only(year.factors)["version"] == 2
    assert only(year.factors)["factor_id"] == only(first.factors)["factor_id"]
    old, new = year.versions.to_pylist()
    assert (old["version"], old["valid_from"], old["valid_to"]) == (1, origin(1).at, origin(2).at)
    assert (new["version"], new["valid_from"], new["valid_to"]) == (2, origin(2).at, None)
    assert (old["file"], new["file"], new["job_id"]) == ("file1", "file2", 102)
    assert changed_types(first.factors, year.factors) == ["road"]


# What an upload lacks


def test_a_stale_factor_is_still_used() -> None:
    year = after([line(), line(words={"vehicle": "coach"})], [line(words={"vehicle": "coach"})])
    entries = pa.table(
        {
            "year": pa.array([YEAR], pa.int32()),
            "entry_key": [1],
            "unit_id": ["A"],
            "quantity": [10.0],
            "unit": ["km"],
            "classification": ['{"vehicle":"taxi"}'],
            "kg_co2eq": pa.array([None], pa.float64()),
        }
    )
    row = only(emissions(catalogue().type("road"), entries, year.factors))
    assert (row["status"], row["mg_co2e"], row["factor_version"]) == ("matched", 2_000_000, 1)


# Any uploads in any order

KINDS: Mapping[str, Any] = {
    "road": ("kg/km", [{"vehicle": "taxi"}, {"vehicle": "coach"}, {"vehicle": "motorcycle"}]),
    "paper": ("kg/kg", [{"kind": "virgin"}, {"kind": "recycled"}]),
    "water": ("kg/m3", [{}]),
}
FACTOR_KEYS = [(kind, json.dumps(words)) for kind, (_, each) in KINDS.items() for words in each]
UPLOADS = st.lists(
    st.dictionaries(
        st.sampled_from(FACTOR_KEYS),
        st.tuples(st.sampled_from([0, 0.1, 0.2]), st.sampled_from(["", "a", "b"])),
        min_size=1,
    ),
    min_size=1,
    max_size=6,
)


@dataclass
class Model:
    """The same rules, one factor at a time."""

    values: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    sources: dict[tuple[str, str], str | None] = field(default_factory=dict)
    stale: set[tuple[str, str]] = field(default_factory=set)
    seen: dict[tuple[str, str], int] = field(default_factory=dict)

    def take(self, upload: Mapping[tuple[str, str], tuple[float, str]], job: int) -> set[str]:
        """The types that changed."""
        kinds = {kind for kind, _ in upload}
        changed = set()
        self.stale |= {key for key in self.values if key[0] in kinds}
        for key, (value, source) in upload.items():
            history = self.values.setdefault(key, [])
            if history[-1:] != [value]:
                history.append(value)
                changed.add(key[0])
            self.stale.discard(key)
            self.sources[key] = source or None
            self.seen[key] = job
        return changed

    def rows(self) -> set[tuple[Any, ...]]:
        return {
            (*key, values[-1], len(values), key in self.stale, self.sources[key], self.seen[key])
            for key, values in self.values.items()
        }


def lines_of(upload: Mapping[tuple[str, str], tuple[float, str]]) -> pa.Table:
    return incoming(
        *(
            line(kind, words, value, KINDS[kind][0], source)
            for (kind, words), (value, source) in upload.items()
        )
    )


def rows_of(factors: pa.Table) -> set[tuple[Any, ...]]:
    names = ("classification", "value", "version", "stale", "source", "last_seen_job_id")
    found = {
        (row["data_entry_type"], json.dumps(json.loads(row["classification"])), *(row[n] for n in names[1:]))
        for row in factors.to_pylist()
    }
    assert len(found) == factors.num_rows
    return found


def mixed(year: YearOfFactors, seed: int) -> YearOfFactors:
    """As a table gives its rows back: in any order."""
    order = np.random.default_rng(seed).permutation
    return YearOfFactors(*(t.take(pa.array(order(len(t)))) for t in (year.factors, year.versions)))


@settings(max_examples=25, deadline=None)
@given(UPLOADS, st.integers(0, 9))
def test_any_uploads_make_what_the_rules_say_of_each_factor(uploads: list[Any], seed: int) -> None:
    model, year = Model(), YearOfFactors.empty()
    for number, upload in enumerate(uploads, 1):
        changed = model.take(upload, 100 + number)
        new = merged(YEAR, mixed(year, seed), lines_of(upload), origin(number))
        assert changed_types(year.factors, new.factors) == sorted(changed)
        assert rows_of(new.factors) == model.rows()
        year = new
    histories: dict[int, list[Any]] = {}
    for version in sorted(year.versions.to_pylist(), key=lambda v: v["version"]):
        histories.setdefault(version["factor_id"], []).append(version)
    assert sorted([v["value"] for v in h] for h in histories.values()) == sorted(model.values.values())
    for history in histories.values():
        assert [v["version"] for v in history] == [*range(1, len(history) + 1)]
        assert [v["valid_to"] for v in history] == [*(v["valid_from"] for v in history[1:]), None]


# What a calculation sees


def test_a_calculation_sees_values_and_sets_of_factors_only() -> None:
    seen = digests(after([line()]).factors)
    assert digests(after([line(source="another")]).factors) == seen
    assert digests(after([line()], [line()]).factors) == seen
    assert digests(after([line(value=0.3)]).factors) != seen
    assert digests(after([line(), line(words={"vehicle": "coach"})]).factors) != seen
    assert digests(YearOfFactors.empty().factors) == {}

"""A file is at rest when looks some time apart, by our clock, saw the same of it."""

from __future__ import annotations

import os

import pytest

from domain.carbon.dropped import SETTLED, Seen, at_rest, key_of, looked, place_of, turn


def test_a_file_is_at_rest_once_it_was_seen_unchanged_for_long_enough() -> None:
    first = looked({"a": "1"}, {}, 100.0)
    assert at_rest(first, 100.0) == []
    later = looked({"a": "1"}, first, 100.0 + SETTLED)
    assert at_rest(later, 100.0 + SETTLED) == ["a"]


def test_every_change_begins_the_waiting_anew() -> None:
    seen = looked({"a": "1"}, {}, 0.0)
    seen = looked({"a": "2"}, seen, SETTLED)
    assert at_rest(seen, SETTLED) == []
    assert at_rest(looked({"a": "2"}, seen, 2 * SETTLED), 2 * SETTLED) == ["a"]


def test_a_clock_that_was_put_back_makes_nothing_wait_for_ever() -> None:
    seen = looked({"a": "1"}, {"a": Seen("1", 1e9)}, 0.0)
    assert at_rest(looked({"a": "1"}, seen, SETTLED), SETTLED) == ["a"]


def test_units_go_first_then_factors_then_data_and_of_each_what_was_written_last_goes_last() -> None:
    lying = {"data/b": "1:10:7", "data/a": "1:20:7", "units/z": "1:90:7", "factors/y": "1:80:7"}
    assert sorted(lying, key=lambda place: turn(place, lying[place])) == [
        "units/z",
        "factors/y",
        "data/b",
        "data/a",
    ]


@pytest.mark.parametrize("name", ["flüge 100%.csv", "a%2Fb", "tab\there", os.fsdecode(b"\xff.csv"), "日本"])
def test_every_name_has_a_key_that_is_text_and_leads_back_to_it(name: str) -> None:
    key = key_of(f"data/{name}")
    assert key.isprintable()
    key.encode()
    assert place_of(key) == f"data/{name}"

"""A file is at rest when looks some time apart, by our clock, saw the same of it."""

from __future__ import annotations

import os

import pytest

from domain.carbon.dropped import LATE, SETTLED, Seen, at_rest, key_of, looked, place_of, watched


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


def test_what_has_gone_is_watched_for_a_while() -> None:
    before = {"a": Seen("1", 0.0)}
    watching = watched({}, before, {}, 50.0)
    assert watching == {"a": Seen("1", 50.0)}
    assert watched({}, {}, watching, 49.0 + LATE) == watching
    assert watched({}, {}, watching, 50.0 + LATE) == {}
    assert watched({"a": Seen("2", 60.0)}, {}, watching, 60.0) == {}


@pytest.mark.parametrize("name", ["flüge 100%.csv", "a%2Fb", "tab\there", os.fsdecode(b"\xff.csv"), "日本"])
def test_every_name_has_a_key_that_is_text_and_leads_back_to_it(name: str) -> None:
    key = key_of(f"data/{name}")
    assert key.isprintable()
    key.encode()
    assert place_of(key) == f"data/{name}"

"""What applications said they hold: the newest word on each place, on every database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from services.carbon.store import FeedContent

START = datetime(2026, 11, 18, 10, 30, tzinfo=UTC)
PLANE = FeedContent("manual", "main", "plane", 2025, "1")


def test_the_last_word_on_a_place_counts(store):
    store.feed_contents.report([PLANE, replace(PLANE, year=2024)], START)
    store.feed_contents.report([replace(PLANE, version="2"), replace(PLANE, version="3")], START)
    assert store.feed_contents.all() == [replace(PLANE, year=2024), replace(PLANE, version="3")]


def test_nothing_reported_is_nothing_written(store):
    store.feed_contents.report([], START)
    assert store.feed_contents.all() == []


def test_an_answer_that_was_asked_for_earlier_and_comes_later_is_no_news(store):
    later = START + timedelta(seconds=1)
    store.feed_contents.report([replace(PLANE, version="2")], later)
    store.feed_contents.report([PLANE], START)
    assert store.feed_contents.all() == [replace(PLANE, version="2")]
    store.feed_contents.report([replace(PLANE, version="2")], later + timedelta(seconds=2))
    store.feed_contents.report([PLANE], later + timedelta(seconds=1))
    assert store.feed_contents.all() == [replace(PLANE, version="2")], "the same word again is news too"


def test_what_was_read_is_what_was_asked_for_or_newer_unless_more_was_received(store):
    store.feed_contents.report([PLANE], START)
    store.feed_contents.mark_read(PLANE, "2")
    assert store.feed_contents.all() == [replace(PLANE, version="2")]
    store.feed_contents.report([replace(PLANE, version="3")], START)
    store.feed_contents.mark_read(replace(PLANE, version="2"), "2")
    assert store.feed_contents.all() == [replace(PLANE, version="3")], "the edit is still to be read"


def test_many_may_hear_at_once_in_any_order(store):
    places = [replace(PLANE, topic=f"type{n}") for n in range(20)]

    def hear(number: int) -> None:
        reported = places if number % 2 else places[::-1]
        store.feed_contents.report([replace(one, version=str(number)) for one in reported], START)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(hear, range(24)))
    assert [one.topic for one in store.feed_contents.all()] == sorted(one.topic for one in places)

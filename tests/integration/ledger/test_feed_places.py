"""What applications said they hold: the newest word on each place, on every database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from resources.ledger.feed_places import FeedPlace

PLANE = FeedPlace("manual", "main", "plane", 2025, "1")


def test_the_last_word_on_a_place_counts(ledger):
    ledger.feed_places.hear([PLANE, replace(PLANE, year=2024)])
    ledger.feed_places.hear([replace(PLANE, version="2"), replace(PLANE, version="3")])
    assert ledger.feed_places.all() == [replace(PLANE, year=2024), replace(PLANE, version="3")]


def test_nothing_told_is_nothing_written(ledger):
    ledger.feed_places.hear([])
    assert ledger.feed_places.all() == []


def test_the_moment_is_that_of_the_version(ledger, clock):
    ledger.feed_places.hear([PLANE])
    first = ledger.views()["carbon.feed_place"]().to_pylist()
    clock.advance(minutes=5)
    ledger.feed_places.hear([PLANE])
    assert ledger.views()["carbon.feed_place"]().to_pylist() == first


def test_many_may_hear_at_once_in_any_order(ledger):
    places = [replace(PLANE, topic=f"type{n}") for n in range(20)]

    def hear(number: int) -> None:
        told = places if number % 2 else places[::-1]
        ledger.feed_places.hear(replace(one, version=str(number)) for one in told)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(hear, range(24)))
    assert [one.topic for one in ledger.feed_places.all()] == sorted(one.topic for one in places)


def test_sources_of_one_domain_are_found_by_its_name(ledger):
    for name in ("carbon.manual", "carbon_x.manual", "tushare.daily"):
        ledger.freshness.succeeded(name, rows_latest=1, rows_today=None)
    assert [one.source for one in ledger.freshness.all("carbon")] == ["carbon.manual"]
    assert len(ledger.freshness.all()) == 3

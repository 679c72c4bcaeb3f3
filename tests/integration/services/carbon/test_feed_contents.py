"""What applications reported: the newest version of each scope, on every database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from domain.carbon.feeds import FeedChange

START = datetime(2026, 11, 18, 10, 30, tzinfo=UTC)
PLANE = FeedChange("manual", "main", "plane", 2025, "1")


def test_report__scope_twice__last_version_counts(store):
    store.feed_contents.report([PLANE, replace(PLANE, year=2024)], START)
    store.feed_contents.report([replace(PLANE, version="2"), replace(PLANE, version="3")], START)
    assert store.feed_contents.all() == [replace(PLANE, year=2024), replace(PLANE, version="3")]


def test_report__nothing__writes_nothing(store):
    store.feed_contents.report([], START)
    assert store.feed_contents.all() == []


def test_report__answer_to_an_earlier_poll__changes_nothing(store):
    later = START + timedelta(seconds=1)
    store.feed_contents.report([replace(PLANE, version="2")], later)
    store.feed_contents.report([PLANE], START)
    assert store.feed_contents.all() == [replace(PLANE, version="2")]
    store.feed_contents.report([replace(PLANE, version="2")], later + timedelta(seconds=2))
    store.feed_contents.report([PLANE], later + timedelta(seconds=1))
    assert store.feed_contents.all() == [replace(PLANE, version="2")]


def test_delete_gone__older_reports_of_the_source__are_gone(store):
    api, later = replace(PLANE, source="api"), START + timedelta(seconds=30)
    store.feed_contents.report([PLANE, replace(PLANE, year=2024), api], START)
    store.feed_contents.report([PLANE], later)
    store.feed_contents.delete_gone("manual", START)
    assert len(store.feed_contents.all()) == 3, "an earlier poll forgets nothing of a later one"
    store.feed_contents.delete_gone("manual", later)
    assert set(store.feed_contents.all()) == {PLANE, api}


def test_report__entries_factors_and_units__are_kept_apart(store):
    factors = replace(PLANE, kind="factors", version="7")
    units = replace(PLANE, kind="units", data_entry_type="", version="8")
    store.feed_contents.report([PLANE, factors, units], START)
    store.feed_contents.mark_read(factors, "9")
    assert set(store.feed_contents.all()) == {PLANE, replace(factors, version="9"), units}


def test_mark_read__reported_meanwhile__stays_to_be_read(store):
    store.feed_contents.report([PLANE], START)
    store.feed_contents.mark_read(PLANE, "2")
    assert store.feed_contents.all() == [replace(PLANE, version="2")]
    store.feed_contents.report([replace(PLANE, version="3")], START)
    store.feed_contents.mark_read(replace(PLANE, version="2"), "2")
    assert store.feed_contents.all() == [replace(PLANE, version="3")], "the edit is still to be read"


def test_report__many_at_once_in_any_order__all_are_kept(store):
    scopes = [replace(PLANE, data_entry_type=f"type{n}") for n in range(20)]

    def report(number: int) -> None:
        reported = scopes if number % 2 else scopes[::-1]
        store.feed_contents.report([replace(one, version=str(number)) for one in reported], START)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(report, range(24)))
    assert [one.data_entry_type for one in store.feed_contents.all()] == sorted(
        one.data_entry_type for one in scopes
    )

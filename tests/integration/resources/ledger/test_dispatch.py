"""Dispatching: which rows go next, how they travel, and how a run that never claims is replaced."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.integration.conftest import FILL as FILL_KIND
from tests.integration.resources.ledger.steps import FILL, enqueue


def day_of(row) -> str:
    return row.key.split(":")[1]


def keys(dispatches) -> list[tuple[str, ...]]:
    return [sent.keys for sent in dispatches]


def test_dispatch__limit__sends_the_most_urgent_then_the_oldest(ledger, clock):
    enqueue(ledger, "b", "a", "c")
    enqueue(ledger, "later", not_before=clock() + timedelta(minutes=10))
    enqueue(ledger, "urgent", priority=5)
    assert keys(ledger.dispatch(FILL, limit=2)) == [("urgent",), ("b",)]
    assert keys(ledger.dispatch(FILL, limit=9)) == [("a",), ("c",)]


def test_dispatch__group__sends_its_rows_together_and_limits_groups(ledger):
    enqueue(ledger, "daily:17", "basic:17", "daily:18", "basic:18", "daily:16")
    sent = ledger.dispatch(FILL, limit=2, group=day_of, order="newest", only=lambda row: day_of(row) < "18")
    assert [(one.group, one.keys) for one in sent] == [
        ("17", ("daily:17", "basic:17")),
        ("16", ("daily:16",)),
    ]
    assert [ledger.sent(one.id) for one in sent] == [list(one.rows) for one in sent]


def test_dispatch__run_ended_without_claiming__waits_from_the_end_of_the_run(ledger, clock):
    """A start time-out is longer than the first wait: counted from the dispatch, it would be over."""
    enqueue(ledger, "a")
    waits, ids = [], []
    for _ in range(6):
        (sent,) = ledger.dispatch(FILL, limit=1)
        ids.append(sent.id)
        clock.advance(minutes=10)
        assert ledger.dispatch(FILL, limit=1, busy={sent.id}) == [], "the run is still queued"
        assert ledger.dispatch(FILL, limit=1) == [], "the end of the run is seen now"
        ended, (row,) = clock(), ledger.find()
        waits.append((row.not_before - ended).total_seconds())
        clock.now = row.not_before - timedelta(seconds=1)
        assert ledger.dispatch(FILL, limit=1) == []
        clock.now = row.not_before
    assert waits == [60, 120, 240, 480, 900, 900]
    assert len(set(ids)) == 6, "a run key is spent with its run"


def test_dispatch__run_not_known_yet__waits_for_it(ledger, clock):
    """Between a dispatch and its run in Dagster the daemon may be killed, or another pass may come."""
    enqueue(ledger, "a")
    ledger.dispatch(FILL, limit=1)
    clock.advance(seconds=119)
    assert ledger.dispatch(FILL, limit=1) == []
    assert ledger.find()[0].dispatch_id is not None


def test_dispatch__pulled_kind__is_refused(ledger):
    with pytest.raises(ValueError, match="pulled"):
        ledger.with_kinds([replace(FILL_KIND, pulled=True)]).dispatch(FILL, limit=1)

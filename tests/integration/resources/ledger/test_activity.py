"""Unfinished work and what happened since, for monitoring: on both databases, however much is finished."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import event, text

from resources.ledger.activity import Activity
from tests.integration.resources.ledger.steps import FILL, FINITE, enqueue, lease


def test_unfinished__some_of_each__has_number_and_oldest_by_kind_and_status(ledger, clock):
    begun = clock()
    enqueue(ledger, "a", "b")
    clock.advance(seconds=60)
    enqueue(ledger, "c")
    enqueue(ledger, "a", kind=FINITE)
    with lease(ledger, "a"):
        found = {(one.kind, one.status): one for one in Activity(ledger.engine).unfinished()}
    assert {key: one.number for key, one in found.items()} == {
        (FILL, "queued"): 2,
        (FILL, "running"): 1,
        (FINITE, "queued"): 1,
    }
    assert found[FILL, "queued"].oldest == begun
    assert found[FINITE, "queued"].oldest == begun + timedelta(seconds=60)


def test_between__work_ended__has_each_event_once_with_its_duration(ledger, clock):
    activity = Activity(ledger.engine)
    enqueue(ledger, "before")
    after = activity.newest_event()
    enqueue(ledger, "a", "b", "c", "d")
    with lease(ledger, "a", "b", "c", "d") as held:
        clock.advance(seconds=10)
        held.complete("a")
        held.fail("b", "no")
        held.defer("c")
        held.defer("d", "away")
    found = {(one.event, one.failed): one for one in activity.between(after, activity.newest_event())}
    assert found["created", False].number == 4
    assert (found["completed", False].bucket, round(found["completed", False].seconds)) == (2, 10)
    assert (found["failed", True].number, found["failed", True].bucket) == (1, 2)
    assert (found["deferred", False].bucket, found["deferred", True].bucket) == (None, None)
    assert activity.between(activity.newest_event(), activity.newest_event()) == []


def test_unfinished__much_is_finished__reads_none_of_it(ledger):
    """No plan may read the whole table: with a million finished rows that would take a second."""
    statements: list[str] = []
    enqueue(ledger, "a")
    event.listen(ledger.engine, "before_cursor_execute", lambda *seen: statements.append(seen[2]))
    Activity(ledger.engine).unfinished()
    [query] = [one for one in statements if "unfinished" in one]
    with ledger.engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            plan = [row[3] for row in connection.execute(text(f"EXPLAIN QUERY PLAN {query}"))]
            scans = [line for line in plan if line.startswith("SCAN work")]
            assert scans
            assert all("ix_work_unfinished" in line for line in scans), plan
        else:
            connection.execute(text("SET enable_seqscan = off"))
            plan = [row[0] for row in connection.execute(text(f"EXPLAIN {query}"))]
            assert any("ix_work_unfinished" in line for line in plan), plan

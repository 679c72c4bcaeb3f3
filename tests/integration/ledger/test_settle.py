"""Answers by id and fence, the sweep, and what a person may do."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import insert, select

from domain.shared.error import InvalidInput, TransientResourceError
from domain.shared.work import WorkRequest
from resources.ledger.client import LeaseLost, Swept
from resources.ledger.schema import pipeline_member

FILL = "market.fill"
FINITE = "records.hook"


def claimed(ledger, key: str = "a", *, kind: str = FILL, holder: str = "worker:1"):
    ledger.enqueue([WorkRequest(kind, key, "f")])
    (row,) = ledger.claim(kind, holder=holder, limit=1)
    return row


def running_under(ledger, run: str, key: str = "a", kind: str = FILL):
    """A row whose run went away without a word."""
    held = ledger.lease(kind, [key], run, final=False, heartbeat=False)
    with pytest.raises(TransientResourceError), held:
        raise TransientResourceError("between passes")
    return ledger.find(key_prefix=key)[0]


# Answers


def test_a_stale_fence_changes_nothing_and_says_so(ledger):
    row = claimed(ledger)
    ledger.release(row.id, row.fence)
    (again,) = ledger.claim(FILL, holder="worker:2", limit=1)
    for answer in (
        lambda: ledger.complete(row.id, row.fence),
        lambda: ledger.skip(row.id, row.fence, "x"),
        lambda: ledger.defer(row.id, row.fence, "x"),
        lambda: ledger.fail(row.id, row.fence, "x"),
        lambda: ledger.release(row.id, row.fence),
    ):
        with pytest.raises(LeaseLost, match=f"work {row.id} "):
            answer()
    assert ledger.get(row.id) == again


def test_a_finished_row_takes_no_second_answer(ledger):
    row = claimed(ledger)
    done = ledger.complete(row.id, row.fence)
    with pytest.raises(LeaseLost):
        ledger.fail(row.id, done.fence, "but then")
    assert ledger.get(row.id).status == "completed"


def test_each_transition_is_an_event(ledger, clock):
    row = claimed(ledger)
    ledger.defer(row.id, row.fence, TransientResourceError("down", reason_code="source_down"))
    clock.advance(hours=1)
    (again,) = ledger.claim(FILL, holder="worker:2", limit=1)
    ledger.complete(again.id, again.fence)
    story = [(e.event, e.status, e.attempt, e.run_id, e.error) for e in ledger.events(row.id)]
    assert story == [
        ("created", "queued", 0, None, None),
        ("claimed", "running", 1, "worker:1", None),
        ("deferred", "deferred", 1, "worker:1", "down"),
        ("claimed", "running", 2, "worker:2", "down"),
        ("completed", "completed", 2, "worker:2", None),
    ]


# Sweep


def test_a_row_of_a_finished_run_is_queued_again_with_its_attempts(ledger, clock):
    row = running_under(ledger, "run")
    (swept,) = ledger.sweep(finished_runs={"run", "other"})
    assert (swept.run_id, swept.why, swept.work.id) == ("run", "run_finished", row.id)
    after = ledger.get(row.id)
    assert after == swept.work
    assert (after.status, after.attempts, after.not_before, after.lease_until) == ("queued", 1, clock(), None)


def test_a_renewed_lease_is_never_stolen(ledger, machine):
    with ledger.lease(FILL, ["a"], "run", heartbeat=False) as lease:
        for _ in range(20):
            machine.advance(seconds=59)
            assert ledger.sweep(finished_runs=()) == []
            lease.check()


def test_an_unrenewed_lease_is_an_orphan_and_its_holder_is_told(ledger, machine):
    lease = ledger.lease(FILL, ["a"], "run", heartbeat=False)
    swept: list[Swept] = []

    def run() -> None:
        with lease:
            machine.advance(seconds=61)
            swept.extend(ledger.sweep(finished_runs=()))

    with pytest.raises(LeaseLost):
        run()
    assert [(one.why, one.run_id) for one in swept] == [("lease_expired", "run")]
    assert ledger.get(swept[0].work.id) == swept[0].work, "the late holder wrote nothing"
    with pytest.raises(LeaseLost):
        lease.check()


def test_a_stopped_business_clock_ends_no_lease_and_a_moving_one_neither(ledger, clock):
    running_under(ledger, "run")
    clock.advance(days=3)
    assert ledger.sweep(finished_runs=()) == []


def test_a_worker_is_judged_by_its_lease_alone(ledger, machine):
    row = claimed(ledger)
    assert ledger.sweep(finished_runs={"worker:1"}) == []
    (swept,) = ledger.sweep(finished_runs=(), now=machine() + timedelta(seconds=61))
    assert swept.work.id == row.id


def test_an_orphan_is_abandoned_at_its_maximum(ledger):
    for attempt in range(3):
        running_under(ledger, f"run {attempt}", kind=FINITE)
        (swept,) = ledger.sweep(finished_runs={f"run {attempt}"})
    assert (swept.work.status, swept.work.error_kind, swept.work.reason_code) == (
        "failed", "abandoned", "abandoned",
    )  # fmt: skip
    assert "3 attempts" in swept.work.error
    assert ledger.events(swept.work.id)[-1].event == "abandoned"


def test_where_there_is_no_maximum_dying_holders_count_as_unclassified(ledger, clock):
    outcomes = []
    for attempt in range(3):
        running_under(ledger, f"run {attempt}")
        (swept,) = ledger.sweep(finished_runs={f"run {attempt}"})
        outcomes.append((swept.work.status, (swept.work.not_before - clock()).total_seconds()))
    assert outcomes[:2] == [("queued", 0), ("queued", 5)]
    assert outcomes[2][0] == "failed"


def test_an_orphan_with_a_newer_wish_behind_it_makes_way(ledger):
    old = running_under(ledger, "run")
    (new,) = ledger.enqueue([WorkRequest(FILL, "a", "f2")]).created
    with ledger.engine.begin() as connection:
        connection.execute(insert(pipeline_member), [{"pipeline_id": "p", "work_id": old.id}])
    (swept,) = ledger.sweep(finished_runs={"run"})
    assert (swept.work.id, swept.work.status, swept.work.reason_code) == (old.id, "cancelled", "superseded")
    assert ledger.get(new.id).attempts == 1
    assert [sent.rows[0].id for sent in ledger.dispatch(FILL, limit=9)] == [new.id]
    with ledger.engine.connect() as connection:
        assert set(connection.execute(select(pipeline_member.c.work_id)).scalars()) == {old.id, new.id}


def test_sweeping_twice_sweeps_once(ledger):
    running_under(ledger, "run")
    assert len(ledger.sweep(finished_runs={"run"})) == 1
    assert ledger.sweep(finished_runs={"run"}) == []


# People


def test_retry_makes_a_deferred_row_due(ledger, clock):
    row = claimed(ledger)
    ledger.defer(row.id, row.fence, "later", not_before=clock() + timedelta(hours=9))
    again = ledger.retry(row.id)
    assert (again.id, again.status, again.not_before, again.attempts) == (row.id, "queued", clock(), 1)
    assert len(ledger.dispatch(FILL, limit=1)) == 1


def test_retry_gives_a_failed_row_a_new_generation(ledger):
    row = claimed(ledger, kind=FINITE)
    ledger.fail(row.id, row.fence, "no")
    again = ledger.retry(row.id)
    assert again.id > row.id
    assert (again.parent_id, again.fingerprint, again.attempts, again.status) == (row.id, "f", 0, "queued")
    assert ledger.get(row.id).status == "failed", "history stays"
    assert ledger.retry(row.id).id == again.id, "asked twice, it is one wish"


def test_retry_of_running_or_unknown_work_is_refused(ledger):
    row = claimed(ledger)
    with pytest.raises(InvalidInput, match="is running"):
        ledger.retry(row.id)
    with pytest.raises(InvalidInput, match="no work 999"):
        ledger.retry(999)


def test_cancel_ends_waiting_and_running_rows(ledger):
    waiting = ledger.enqueue([WorkRequest(FILL, "w", "f")]).created[0]
    assert ledger.cancel(waiting.id).status == "cancelled"
    row = claimed(ledger)
    cancelled = ledger.cancel(row.id)
    assert (cancelled.status, cancelled.run_id) == ("cancelled", "worker:1")
    assert ledger.cancel(row.id) == cancelled, "twice is once"
    with pytest.raises(LeaseLost):
        ledger.complete(row.id, row.fence)


def test_cancel_of_finished_or_unknown_work_is_refused(ledger):
    row = claimed(ledger)
    ledger.complete(row.id, row.fence)
    with pytest.raises(InvalidInput, match="completed already"):
        ledger.cancel(row.id)
    with pytest.raises(InvalidInput, match="no work 999"):
        ledger.cancel(999)


# Withdrawing


def test_only_what_waits_as_it_was_seen_is_withdrawn(ledger):
    names = ["sent", "as seen", "runs", "wished anew", "done"]
    seen = ledger.enqueue([WorkRequest(FILL, name, "f") for name in names]).created
    [sent] = ledger.dispatch(FILL, limit=1)
    assert sent.keys == ("sent",)
    ledger.enqueue([WorkRequest(FILL, "wished anew", "g")])
    with ledger.lease(FILL, ["done"], "run", heartbeat=False):
        pass
    with ledger.lease(FILL, ["runs"], "run", heartbeat=False) as held:
        gone = ledger.withdraw(seen, reason_code="superseded")
        held.check()
    assert [(row.key, row.status, row.reason_code) for row in gone] == [
        ("as seen", "cancelled", "superseded")
    ]
    assert {row.key: row.status for row in ledger.find(FILL)} == {
        "as seen": "cancelled",
        "runs": "completed",
        "sent": "queued",
        "wished anew": "queued",
        "done": "completed",
    }
    assert ledger.withdraw([], reason_code="superseded") == []

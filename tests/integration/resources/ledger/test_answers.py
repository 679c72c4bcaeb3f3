"""Answers by id and fence, and the sweep of what dead holders left."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.shared.error import TransientResourceError
from domain.shared.work import WorkRequest
from resources.ledger.model import LeaseLost, Work

FILL, FINITE = "market.fill", "records.hook"


def claimed(ledger, key: str = "a", *, kind: str = FILL, holder: str = "worker:1", pipelines=()):
    ledger.enqueue([WorkRequest(kind, key, "f", pipelines=pipelines)])
    (row,) = ledger.claim(kind, holder=holder, limit=1)
    return row


def vanished(ledger, run: str, key: str = "a", kind: str = FILL):
    """A row whose run was killed."""
    held = ledger.lease(kind, [key], run, heartbeat=False)
    held.__enter__()
    return held.work[key]


def test_answer__stale_fence__changes_nothing_and_raises(ledger):
    row = claimed(ledger)
    ledger.release(row)
    (again,) = ledger.claim(FILL, holder="worker:2", limit=1)
    for answer in (
        lambda: ledger.complete(row),
        lambda: ledger.skip(row, "x"),
        lambda: ledger.defer(row, "x"),
        lambda: ledger.fail(row, "x"),
        lambda: ledger.release(row),
    ):
        with pytest.raises(LeaseLost, match=f"work {row.id} "):
            answer()
    assert ledger.get(row.id) == again


def test_answer__finished_row__is_refused(ledger):
    row = claimed(ledger)
    ledger.complete(row)
    with pytest.raises(LeaseLost):
        ledger.fail(ledger.get(row.id), "but then")
    assert ledger.get(row.id).status == "completed"


def test_events__each_transition__is_one(ledger, clock):
    row = claimed(ledger)
    ledger.defer(row, TransientResourceError("down", reason_code="source_down"))
    clock.advance(hours=1)
    (again,) = ledger.claim(FILL, holder="worker:2", limit=1)
    ledger.complete(again)
    assert [(e.event, e.status, e.attempt, e.run_id, e.error) for e in ledger.events(row.id)] == [
        ("created", "queued", 0, None, None),
        ("claimed", "running", 1, "worker:1", None),
        ("deferred", "deferred", 1, "worker:1", "down"),
        ("claimed", "running", 2, "worker:2", "down"),
        ("completed", "completed", 2, "worker:2", None),
    ]


def test_sweep__finished_run__queues_its_rows_with_their_attempts_once(ledger, clock):
    row = vanished(ledger, "run")
    (swept,) = ledger.sweep(finished_runs={"run", "other"})
    assert (swept.run_id, swept.reason_code, swept.id) == ("run", "run_finished", row.id)
    after = ledger.get(row.id)
    assert after == swept
    assert (after.status, after.attempts, after.not_before, after.lease_until) == ("queued", 1, clock(), None)
    assert ledger.sweep(finished_runs={"run"}) == []


def test_sweep__renewed_lease__is_never_stolen(ledger, machine, clock):
    with ledger.lease(FILL, ["a"], "run", heartbeat=False) as lease:
        for _ in range(20):
            machine.advance(seconds=59)
            clock.advance(days=3)
            assert ledger.sweep(finished_runs=()) == []
            lease.check()


def test_sweep__expired_lease__takes_the_row_from_a_late_holder(ledger, machine):
    lease = ledger.lease(FILL, ["a"], "run", heartbeat=False)
    swept: list[Work] = []

    def run() -> None:
        with lease:
            machine.advance(seconds=61)
            swept.extend(ledger.sweep(finished_runs=()))

    with pytest.raises(LeaseLost):
        run()
    assert [(one.reason_code, one.run_id) for one in swept] == [("lease_expired", "run")]
    assert ledger.get(swept[0].id) == swept[0], "the late holder wrote nothing"


def test_sweep__worker__is_judged_by_its_lease_alone(ledger, machine):
    row = claimed(ledger)
    assert ledger.sweep(finished_runs={"worker:1"}) == []
    (swept,) = ledger.sweep(finished_runs=(), now=machine() + timedelta(seconds=61))
    assert swept.id == row.id


def test_sweep__maximum_of_attempts__abandons_the_row(ledger):
    for attempt in range(3):
        vanished(ledger, f"run {attempt}", kind=FINITE)
        (swept,) = ledger.sweep(finished_runs={f"run {attempt}"})
    assert (swept.status, swept.error_kind, swept.reason_code) == (
        "failed", "abandoned", "abandoned",
    )  # fmt: skip
    assert ledger.events(swept.id)[-1].event == "abandoned"


def test_sweep__no_maximum__abandons_after_three_deaths(ledger, clock):
    outcomes = []
    for attempt in range(3):
        vanished(ledger, f"run {attempt}")
        (swept,) = ledger.sweep(finished_runs={f"run {attempt}"})
        outcomes.append((swept.status, (swept.not_before - clock()).total_seconds()))
    assert outcomes[:2] == [("queued", 0), ("queued", 5)]
    assert outcomes[2][0] == "failed"


def test_sweep__newer_request_waits__supersedes_the_orphan_and_inherits_its_pipelines(ledger, machine):
    old = claimed(ledger, pipelines=("p",))
    (new,) = ledger.enqueue([WorkRequest(FILL, "a", "f2", pipelines=("q",))]).created
    machine.advance(minutes=5)
    (swept,) = ledger.sweep(finished_runs=())
    assert (swept.id, swept.status) == (old.id, "superseded")
    assert ledger.get(new.id).attempts == 1
    assert [sent.rows[0].id for sent in ledger.dispatch(FILL, limit=9)] == [new.id]
    assert ledger.pipelines.of([old.id, new.id]) == {old.id: ("p",), new.id: ("p", "q")}

"""Leasing named keys for a run, and what each way of leaving the lease leaves in the rows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import event

from domain.shared.error import InvalidInput, PermanentRunnerError, TransientResourceError
from domain.shared.work import WorkRequest
from resources.ledger.client import Ledger
from resources.ledger.lease import Lease
from resources.ledger.model import LeasedElsewhere, LeaseLost, Work

FILL, FINITE = "market.fill", "records.hook"
RETRY_IN = timedelta(seconds=40)


class Wrapped(Exception):
    """What a framework makes of an error."""


def lease(ledger: Ledger, *keys: str, run: str = "run", kind: str = FILL, **more: object) -> Lease:
    return ledger.lease(kind, keys, run, heartbeat=False, **more)


def the(ledger: Ledger, key: str) -> Work:
    return ledger.find(key_prefix=key)[0]


def leave_with(ledger: Ledger, error: BaseException, *keys: str, **more: object) -> None:
    with pytest.raises(type(error)), lease(ledger, *keys, **more):
        raise error


def fail_after_a(held: Lease) -> None:
    """A pass that completes `a` and then meets a transient error."""

    def run() -> None:
        with held:
            held.complete("a")
            raise TransientResourceError("b is down")

    with pytest.raises(TransientResourceError):
        run()


def heartbeats() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("lease of")]


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether another thread brings it about."""
    never = threading.Event()
    return any(condition() or never.wait(0.01) for _ in range(1_000))


# Opening


def test_lease__absent_and_waiting_keys__creates_and_claims_them(ledger, clock, machine):
    later = clock() + timedelta(hours=5)
    (row,) = ledger.enqueue([WorkRequest(FILL, "waiting", "f", params={"n": 1}, not_before=later)]).created
    with lease(ledger, "waiting", "new") as held:
        assert (held.keys, held.busy) == (("waiting", "new"), {})
        assert (held.work["waiting"].id, held.work["waiting"].params) == (row.id, {"n": 1})
        found = the(ledger, "waiting")
        assert (found.status, found.run_id, found.attempts) == ("running", "run", 1)
        assert (found.started_at, found.lease_until) == (clock(), machine() + timedelta(seconds=60))


def test_lease__failed_key_by_hand__keeps_its_fingerprint_refused(ledger):
    ledger.enqueue([WorkRequest(FILL, "a", "f1")])
    leave_with(ledger, PermanentRunnerError("no"), "a")
    leave_with(ledger, PermanentRunnerError("no"), "a", run="by hand")
    assert len(ledger.find(key_prefix="a")) == 2
    assert ledger.enqueue([WorkRequest(FILL, "a", "f1")]).counts["refused"] == 1


def test_lease__no_keys__leases_nothing(ledger):
    with lease(ledger) as held:
        held.check()
        assert held.keys == ()


def test_lease__another_live_run_has_a_key__does_the_rest_and_names_that_run(ledger):
    with lease(ledger, "a", run="first"):
        ledger.enqueue([WorkRequest(FILL, "a", "f2")])
        second = lease(ledger, "a", "b", run="second")
        with pytest.raises(LeasedElsewhere, match="a is leased to first") as refusal, second:
            pass
        assert (second.keys, second.busy) == (("b",), {"a": "first"})
        assert refusal.value.reason_code == "leased_elsewhere"
        assert (the(ledger, "b").status, ledger.running()[0].key) == ("completed", "a")


# Passes of one run


def test_lease__next_pass_of_the_run__continues_the_attempt(ledger):
    leave_with(ledger, TransientResourceError("down"), "a", retry_in=RETRY_IN)
    with lease(ledger, "a") as held:
        assert held.work["a"].attempts == 1
    row = the(ledger, "a")
    assert row.status == "completed"
    events = [e.event for e in ledger.events(row.id)]
    assert events == ["created", "claimed", "pass_failed", "claimed", "completed"]


def test_lease__between_two_passes__frees_the_keys_for_nobody_else(ledger, clock, machine):
    ledger.enqueue([WorkRequest(FILL, "a", "f")])
    [sent] = ledger.dispatch(FILL, limit=1)
    error = TransientResourceError("down", reason_code="source_down")
    leave_with(ledger, error, "a", retry_in=RETRY_IN)
    row = the(ledger, "a")
    assert (row.status, row.reason_code, row.error, row.lease_until) == (
        "queued",
        "source_down",
        "down",
        None,
    )
    assert row.not_before == clock() + RETRY_IN + timedelta(seconds=60)
    assert ledger.dispatch(FILL, limit=1) == []
    clock.advance(minutes=30)  # the pass waits for a slot of its pool
    machine.advance(minutes=30)
    assert ledger.sweep(finished_runs=()) == []
    assert ledger.dispatch(FILL, limit=1, busy={sent.id}) == []
    with lease(ledger, "a") as held:
        assert (held.keys, held.work["a"].attempts) == (("a",), 1)


def test_lease__process_died_between_two_passes__is_dispatched_again(ledger, clock):
    ledger.enqueue([WorkRequest(FILL, "a", "f")])
    ledger.dispatch(FILL, limit=1)
    leave_with(ledger, TransientResourceError("down"), "a", retry_in=RETRY_IN)
    clock.advance(seconds=100)
    [again] = ledger.dispatch(FILL, limit=1)
    assert (again.keys, again.rows[0].crash_count) == (("a",), 0)


def test_lease__last_pass_or_hopeless_error__ends_the_work(ledger):
    leave_with(ledger, PermanentRunnerError("token wrong"), "a", retry_in=RETRY_IN)
    assert the(ledger, "a").status == "failed"
    leave_with(ledger, TransientResourceError("down"), "b")
    assert the(ledger, "b").status == "deferred"


def test_lease__earlier_pass_completed_a_key__is_not_leased_again(ledger):
    fail_after_a(lease(ledger, "a", "b", retry_in=RETRY_IN))
    with lease(ledger, "a", "b") as second:
        assert (second.keys, second.done) == (("b",), ("a",))
        second.complete("a")
    assert len(ledger.find(key_prefix="a")) == 1


def test_lease__earlier_pass_deferred_a_key__is_settled(ledger):
    def first() -> None:
        with lease(ledger, "a", "b", retry_in=RETRY_IN) as held:
            held.defer("a", "quota used up")
            raise TransientResourceError("b is down")

    with pytest.raises(TransientResourceError):
        first()
    with lease(ledger, "a", "b") as second:
        assert (second.keys, second.settled["a"].status) == (("b",), "deferred")


def test_lease__cancelled_between_two_passes__is_not_revived(ledger):
    leave_with(ledger, TransientResourceError("down"), "a", retry_in=RETRY_IN)
    ledger.cancel(the(ledger, "a").id)
    with lease(ledger, "a") as second:
        assert (second.keys, second.done, second.settled["a"].status) == ((), (), "cancelled")


def test_lease__same_run_while_a_pass_still_lives__takes_its_fence(ledger):
    with pytest.raises(LeaseLost), lease(ledger, "a") as zombie, lease(ledger, "a"), pytest.raises(LeaseLost):
        zombie.check()
    assert the(ledger, "a").status == "completed"


def test_lease__worker_completed_the_key_before__leases_it_again(ledger):
    """A worker goes from row to row under one name: what it did before is no earlier pass."""
    for _ in range(2):
        with lease(ledger, "a", run="worker:1") as held:
            assert (held.keys, held.done) == (("a",), ())
            held.fail("a", "no")
    assert [row.status for row in ledger.find(key_prefix="a")] == ["failed", "failed"]


# Leaving


def test_lease__clean_end__completes_what_was_not_answered(ledger, clock):
    with lease(ledger, "a", "b", "c", "d", "e") as held:
        held.complete("a", "fresh")
        held.skip("b", "closed")
        held.defer("c", TransientResourceError("half a day"), not_before=clock() + timedelta(hours=6))
        held.fail("d", "no such day", reason_code="unknown_day")
        clock.advance(minutes=3)
    rows = {row.key: row for row in ledger.find()}
    assert {key: (row.status, row.reason_code) for key, row in rows.items()} == {
        "a": ("completed", "fresh"),
        "b": ("skipped", "closed"),
        "c": ("deferred", "transient"),
        "d": ("failed", "unknown_day"),
        "e": ("completed", ""),
    }
    assert rows["c"].not_before == clock() + timedelta(hours=5, minutes=57)
    assert (rows["c"].finished_at, rows["a"].finished_at) == (None, clock())
    assert all(row.lease_until is None for row in rows.values())


def test_lease__transient_errors__back_off_further_with_each_run(ledger, clock):
    waits = []
    for attempt in range(8):
        error = TransientResourceError("source down", reason_code="source_down")
        leave_with(ledger, error, "a", run=f"run {attempt}")
        row = the(ledger, "a")
        waits.append((row.not_before - clock()).total_seconds())
        assert (row.status, row.error_kind, row.reason_code) == ("deferred", "transient", "source_down")
        clock.now = row.not_before
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_lease__retry_after__is_the_wait(ledger, clock):
    leave_with(ledger, TransientResourceError("slow down", retry_after=timedelta(seconds=42)), "a")
    assert the(ledger, "a").not_before == clock() + timedelta(seconds=42)


def test_lease__maximum_of_attempts__fails(ledger, clock):
    for attempt in range(3):
        leave_with(ledger, TransientResourceError("down"), "a", run=f"run {attempt}", kind=FINITE)
        clock.advance(hours=2)
    row = the(ledger, "a")
    assert (row.status, row.error_kind, row.attempts, row.error) == ("failed", "transient", 3, "down")
    assert ledger.events(row.id)[-1].event == "failed"


def test_lease__deferred_to_a_known_moment__has_no_maximum(ledger, clock):
    for attempt in range(5):
        with lease(ledger, "a", run=f"run {attempt}", kind=FINITE) as held:
            held.defer("a", "rate limit", not_before=clock() + timedelta(minutes=1))
    assert the(ledger, "a").status == "deferred"


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (PermanentRunnerError("token wrong", reason_code="token"), "permanent", "token"),
        (InvalidInput("no calendar"), "invalid_input", "invalid_input"),
    ],
)
def test_lease__hopeless_error__fails_at_once(ledger, error, kind, reason):
    leave_with(ledger, error, "a")
    row = the(ledger, "a")
    assert (row.status, row.error_kind, row.reason_code) == ("failed", kind, reason)


def test_lease__error_wrapped_by_a_framework__is_still_what_it_was(ledger):
    with pytest.raises(Wrapped), lease(ledger, "a"):
        raise Wrapped("step failed") from PermanentRunnerError("token wrong")
    assert (the(ledger, "a").error, the(ledger, "a").status) == ("token wrong", "failed")


def test_lease__unclassified_errors__get_three_attempts_whatever_failed_before(ledger, clock):
    for attempt in range(5):
        leave_with(ledger, TransientResourceError("down"), "a", run=f"transient {attempt}")
    waits = []
    for attempt in range(3):
        leave_with(ledger, ZeroDivisionError("oops"), "a", run=f"run {attempt}")
        row = the(ledger, "a")
        if row.status == "deferred":
            waits.append((row.not_before - clock()).total_seconds())
    assert waits == [5, 25]
    assert (row.status, row.error_kind, row.error) == ("failed", "unclassified", "ZeroDivisionError: oops")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), GeneratorExit()])
def test_lease__interrupted__gives_the_work_back_uncounted(ledger, clock, error):
    leave_with(ledger, error, "a")
    row = the(ledger, "a")
    assert (row.status, row.attempts, row.not_before, row.run_id) == ("queued", 0, clock(), None)
    assert ledger.dispatch(FILL, limit=1)[0].keys == ("a",)


def test_lease__error_after_answers__keeps_the_answers(ledger):
    fail_after_a(lease(ledger, "a", "b"))
    assert (the(ledger, "a").status, the(ledger, "b").status) == ("completed", "deferred")


def test_lease__fails_while_a_newer_request_waits__is_superseded_by_it(ledger, clock):
    created: list[Work] = []

    def run() -> None:
        with lease(ledger, "a"):
            created.extend(ledger.enqueue([WorkRequest(FILL, "a", "f2")]).created)
            raise TransientResourceError("down")

    with pytest.raises(TransientResourceError):
        run()
    newer, older = ledger.find(key_prefix="a")
    assert (older.status, older.reason_code) == ("superseded", "superseded")
    assert (newer.id, newer.status, newer.fingerprint, newer.attempts) == (created[0].id, "deferred", "f2", 1)
    assert newer.not_before == clock() + timedelta(seconds=60)


# Fences, heartbeats, answers


def test_check__row_was_cancelled__raises_and_the_rest_is_done(ledger):
    def run() -> None:
        with lease(ledger, "a", "b") as held:
            ledger.cancel(held.work["a"].id)
            with pytest.raises(LeaseLost):
                held.check()

    with pytest.raises(LeaseLost, match=r"market\.fill a"):
        run()
    assert (the(ledger, "a").status, the(ledger, "b").status) == ("cancelled", "completed")


def test_lease__lost_row_and_an_error_of_the_body__raises_the_error(ledger):
    def run() -> None:
        with lease(ledger, "a") as held:
            ledger.cancel(held.work["a"].id)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as failure:
        run()
    assert "left alone: a" in failure.value.__notes__[0]


def test_check__leased__makes_the_lease_whole(ledger, machine):
    with lease(ledger, "a") as held:
        machine.advance(seconds=50)
        held.check()
        assert the(ledger, "a").lease_until == machine() + timedelta(seconds=60)
        held.complete("a")
        held.check()
        held.check()
    assert [e.event for e in ledger.events(the(ledger, "a").id)] == ["created", "claimed", "completed"]


def test_answer__twice_or_for_an_unknown_key__is_refused(ledger):
    with lease(ledger, "a") as held:
        held.complete("a")
        with pytest.raises(ValueError, match="answered"):
            held.fail("a", "but then")
        with pytest.raises(KeyError, match="b is not leased"):
            held.complete("b")


def test_heartbeat__while_the_body_works__renews_and_writes_answers(ledger, machine, monkeypatch):
    monkeypatch.setattr("resources.ledger.lease.HEARTBEAT", timedelta(milliseconds=5))
    with ledger.lease(FILL, ["a", "b"], "run") as held:
        held.complete("a")
        machine.advance(seconds=30)
        renewed = machine() + timedelta(seconds=60)
        assert eventually(lambda: the(ledger, "a").status == "completed")
        assert eventually(lambda: the(ledger, "b").lease_until == renewed)
        assert the(ledger, "b").status == "running"
    assert not heartbeats()


def test_heartbeat__any_error__beats_again(ledger, machine, monkeypatch):
    monkeypatch.setattr("resources.ledger.lease.HEARTBEAT", timedelta(milliseconds=5))
    refused = threading.Event()

    def refuse(*_: object) -> None:
        if not refused.is_set():
            refused.set()
            raise ValueError("what no driver should raise")

    with ledger.lease(FILL, ["a"], "run"):
        event.listen(ledger.engine, "before_cursor_execute", refuse)
        assert refused.wait(10)
        machine.advance(seconds=30)
        renewed = machine() + timedelta(seconds=60)
        assert eventually(lambda: the(ledger, "a").lease_until == renewed)


def test_lease__250_keys__is_a_handful_of_statements(ledger):
    statements: list[str] = []
    event.listen(ledger.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    keys = [f"d{n}" for n in range(250)]
    with lease(ledger, *keys) as held:
        for key in keys:
            held.complete(key)
        held.check()
    assert ledger.counts() == {FILL: {"completed": 250}}
    assert len(statements) < 40


@pytest.mark.parametrize("character", ["\0", "\ud800"])
def test_lease__error_with_a_character_databases_refuse__is_kept_without_it(ledger, character):
    leave_with(ledger, TransientResourceError(f"no JSON: {character}x"), "a")
    row = the(ledger, "a")
    assert (row.status, row.error) == ("deferred", "no JSON: \ufffdx")
    assert ledger.events(row.id)[-1].error == row.error

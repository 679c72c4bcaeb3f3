"""Hold: taking keys for a run, and what each way of leaving it leaves in the rows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import event

from domain.shared.error import InvalidInput, PermanentRunnerError, TransientResourceError
from domain.shared.work import WorkRequest
from resources.ledger import pauses
from resources.ledger.client import HeldElsewhere, Lease, LeaseLost, Work

FILL = "market.fill"
FINITE = "records.hook"


class Wrapped(Exception):
    """What a framework makes of an error."""


def lease(ledger, *keys: str, run: str = "run", kind: str = FILL, **more: object):
    return ledger.lease(kind, keys, run, heartbeat=False, **more)


def the(ledger, key: str):
    return ledger.find(key_prefix=key)[0]


def leave_with(ledger, error: BaseException, *keys: str, **more: object) -> None:
    with pytest.raises(type(error)), lease(ledger, *keys, **more):
        raise error


def half_done(held: Lease) -> None:
    """A pass that finishes `a` and then meets a transient error."""

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


def test_absent_keys_are_created_and_waiting_ones_claimed_before_their_time(ledger, clock, machine):
    later = clock() + timedelta(hours=5)
    (wished,) = ledger.enqueue([WorkRequest(FILL, "wished", "f", params={"n": 1}, not_before=later)]).created
    with lease(ledger, "wished", "new") as held:
        assert held.keys == ("wished", "new")
        assert held.busy == {}
        assert held.work["wished"].id == wished.id
        assert held.work["wished"].params == {"n": 1}
        row = the(ledger, "wished")
        assert (row.status, row.run_id, row.attempts, row.started_at) == ("running", "run", 1, clock())
        assert row.lease_until == machine() + timedelta(seconds=60)


def test_a_failed_key_run_by_hand_keeps_its_fingerprint(ledger):
    ledger.enqueue([WorkRequest(FILL, "a", "f1")])
    leave_with(ledger, PermanentRunnerError("no"), "a")
    leave_with(ledger, PermanentRunnerError("no"), "a", run="by hand")
    assert len(ledger.find(key_prefix="a")) == 2
    assert ledger.enqueue([WorkRequest(FILL, "a", "f1")]).counts["refused"] == 1


def test_a_run_without_keys_holds_nothing(ledger):
    with lease(ledger) as held:
        held.check()
        assert held.keys == ()


def test_keys_of_another_live_run_are_named_after_the_rest_is_done(ledger):
    with lease(ledger, "a", run="first"):
        second = lease(ledger, "a", "b", run="second")
        with pytest.raises(HeldElsewhere, match="a is being done by first") as refusal, second:
            pass
        assert second.keys == ("b",)
        assert second.busy == {"a": "first"}
        assert refusal.value.reason_code == "held_elsewhere"
        assert isinstance(refusal.value, TransientResourceError)
        assert the(ledger, "b").status == "completed"
        assert the(ledger, "a").status == "running"
    assert the(ledger, "a").status == "completed"


def test_a_row_that_waits_behind_a_run_is_not_taken_while_it_runs(ledger):
    with lease(ledger, "a", run="first"):
        ledger.enqueue([WorkRequest(FILL, "a", "f2")])
        with pytest.raises(HeldElsewhere), lease(ledger, "a", run="second") as second:
            assert second.keys == ()


def test_a_repeated_pass_keeps_the_hold_and_the_attempt(ledger):
    leave_with(ledger, TransientResourceError("down"), "a", final=False, retry_in=timedelta(seconds=10))
    with lease(ledger, "a") as held:
        assert held.work["a"].attempts == 1
    assert the(ledger, "a").status == "completed"
    events = [e.event for e in ledger.events(the(ledger, "a").id)]
    assert events == ["created", "claimed", "pass_failed", "adopted", "completed"]


def test_the_pass_before_cannot_write_any_more(ledger):
    with pytest.raises(LeaseLost), lease(ledger, "a") as zombie, lease(ledger, "a"), pytest.raises(LeaseLost):
        zombie.check()
    assert the(ledger, "a").status == "completed"


def test_what_an_earlier_pass_finished_is_not_done_again(ledger):
    half_done(lease(ledger, "a", "b", final=False))
    with lease(ledger, "a", "b") as second:
        assert second.keys == ("b",)
        assert second.done == ("a",)
        second.complete("a")
    assert len(ledger.find(key_prefix="a")) == 1


def test_a_repeated_pass_does_not_revive_what_a_person_cancelled(ledger):
    leave_with(ledger, TransientResourceError("down"), "a", final=False)
    ledger.cancel(the(ledger, "a").id)
    with lease(ledger, "a") as second:
        assert second.keys == ()
    assert [row.status for row in ledger.find(key_prefix="a")] == ["cancelled"]


# Leaving


def test_a_clean_end_completes_what_was_not_answered(ledger, clock):
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
    assert rows["c"].finished_at is None
    assert rows["a"].finished_at == clock()
    assert all(row.lease_until is None for row in rows.values())


def test_a_transient_error_backs_off_further_with_each_run(ledger, clock):
    waits = []
    for attempt in range(8):
        error = TransientResourceError("source down", reason_code="source_down")
        leave_with(ledger, error, "a", run=f"run {attempt}")
        row = the(ledger, "a")
        waits.append((row.not_before - clock()).total_seconds())
        assert (row.status, row.error_kind, row.reason_code) == ("deferred", "transient", "source_down")
        clock.now = row.not_before
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_the_source_may_say_when_to_come_back(ledger, clock):
    leave_with(ledger, TransientResourceError("slow down", retry_after=timedelta(seconds=42)), "a")
    assert the(ledger, "a").not_before == clock() + timedelta(seconds=42)


def test_transient_errors_are_final_at_the_kinds_maximum(ledger, clock):
    for attempt in range(3):
        leave_with(ledger, TransientResourceError("down"), "a", run=f"run {attempt}", kind=FINITE)
        clock.advance(hours=2)
    row = the(ledger, "a")
    assert (row.status, row.error_kind, row.attempts, row.error) == ("failed", "transient", 3, "down")
    assert ledger.events(row.id)[-1].event == "failed"


def test_a_deferral_to_a_known_moment_burns_no_attempt(ledger, clock):
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
def test_hopeless_errors_fail_at_once(ledger, error, kind, reason):
    leave_with(ledger, error, "a")
    row = the(ledger, "a")
    assert (row.status, row.error_kind, row.reason_code) == ("failed", kind, reason)


def test_an_error_a_framework_wrapped_is_still_what_it_was(ledger):
    with pytest.raises(Wrapped), lease(ledger, "a"):
        raise Wrapped("step failed") from PermanentRunnerError("token wrong")
    assert the(ledger, "a").error == "token wrong"
    assert the(ledger, "a").status == "failed"


def test_an_unclassified_error_gets_three_attempts(ledger, clock):
    waits = []
    for attempt in range(3):
        leave_with(ledger, ZeroDivisionError("oops"), "a", run=f"run {attempt}")
        row = the(ledger, "a")
        if row.status == "deferred":
            waits.append((row.not_before - clock()).total_seconds())
    assert waits == [5, 25]
    assert (row.status, row.error_kind, row.error) == ("failed", "unclassified", "ZeroDivisionError: oops")


def test_transient_errors_before_do_not_use_up_the_attempts_of_a_bug(ledger):
    for attempt in range(5):
        leave_with(ledger, TransientResourceError("down"), "a", run=f"run {attempt}")
    leave_with(ledger, ZeroDivisionError("oops"), "a", run="run 5")
    assert the(ledger, "a").status == "deferred"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), GeneratorExit()])
def test_an_interrupt_gives_the_work_back_uncounted(ledger, clock, error):
    leave_with(ledger, error, "a")
    row = the(ledger, "a")
    assert (row.status, row.attempts, row.not_before, row.run_id) == ("queued", 0, clock(), None)
    assert ledger.dispatch(FILL, limit=1)[0].keys == ("a",)


def test_answers_given_before_an_error_stand(ledger):
    half_done(lease(ledger, "a", "b"))
    assert (the(ledger, "a").status, the(ledger, "b").status) == ("completed", "deferred")


def test_before_the_last_pass_a_transient_error_keeps_rows_and_lease(ledger, machine):
    error = TransientResourceError("down", reason_code="source_down")
    leave_with(ledger, error, "a", final=False, retry_in=timedelta(seconds=40))
    row = the(ledger, "a")
    assert (row.status, row.reason_code, row.error) == ("running", "source_down", "down")
    assert row.lease_until == machine() + timedelta(seconds=100)


def test_before_the_last_pass_other_errors_are_final_all_the_same(ledger):
    leave_with(ledger, PermanentRunnerError("token wrong"), "a", final=False)
    assert the(ledger, "a").status == "failed"


def test_a_wish_made_during_a_run_that_then_fails_waits_with_the_runs_backoff(ledger, clock):
    born: list[Work] = []

    def run() -> None:
        with lease(ledger, "a"):
            born.extend(ledger.enqueue([WorkRequest(FILL, "a", "f2")]).created)
            raise TransientResourceError("down")

    with pytest.raises(TransientResourceError):
        run()
    newer, older = ledger.find(key_prefix="a")
    assert (older.status, older.reason_code) == ("cancelled", "superseded")
    assert (newer.id, newer.status, newer.fingerprint, newer.attempts) == (born[0].id, "deferred", "f2", 1)
    assert newer.not_before == clock() + timedelta(seconds=60)


# Fences, leases, answers


def test_a_cancelled_row_is_left_alone_and_its_holder_is_told(ledger):
    def run() -> None:
        with lease(ledger, "a", "b") as held:
            ledger.cancel(held.work["a"].id)
            with pytest.raises(LeaseLost):
                held.check()

    with pytest.raises(LeaseLost, match=r"market\.fill a"):
        run()
    assert (the(ledger, "a").status, the(ledger, "b").status) == ("cancelled", "completed")


def test_a_lost_row_does_not_hide_the_bodys_own_error(ledger):
    def run() -> None:
        with lease(ledger, "a") as held:
            ledger.cancel(held.work["a"].id)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as failure:
        run()
    assert "left alone: a" in failure.value.__notes__[0]


def test_check_makes_the_lease_whole(ledger, machine):
    with lease(ledger, "a") as held:
        machine.advance(seconds=50)
        held.check()
        assert the(ledger, "a").lease_until == machine() + timedelta(seconds=60)


def test_check_is_content_when_everything_is_answered(ledger):
    with lease(ledger, "a") as held:
        held.complete("a")
        held.check()
        held.check()
    assert [e.event for e in ledger.events(the(ledger, "a").id)] == ["created", "claimed", "completed"]


def test_answering_twice_or_for_a_strange_key_is_a_loud_mistake(ledger):
    with lease(ledger, "a") as held:
        held.complete("a")
        with pytest.raises(ValueError, match="a was answered for already"):
            held.fail("a", "but then")
        with pytest.raises(KeyError, match="b is not held"):
            held.complete("b")


def test_the_heartbeat_renews_and_writes_answers_meanwhile(ledger, machine, monkeypatch):
    monkeypatch.setattr("resources.ledger.lease.HEARTBEAT", timedelta(milliseconds=5))
    beaten = threading.Event()
    with ledger.lease(FILL, ["a", "b"], "run") as held:
        held.complete("a")
        machine.advance(seconds=30)
        event.listen(ledger.engine, "commit", lambda _: beaten.set())
        for _ in range(200):
            beaten.wait(5)
            beaten.clear()
            if the(ledger, "a").status == "completed" and the(
                ledger, "b"
            ).lease_until == machine() + timedelta(seconds=60):
                break
        else:
            pytest.fail("no heartbeat came")
        assert the(ledger, "b").status == "running"
    assert not heartbeats()


def test_250_keys_are_a_handful_of_statements(ledger):
    said: list[str] = []
    event.listen(ledger.engine, "before_cursor_execute", lambda *args: said.append(args[2]))
    keys = [f"d{n}" for n in range(250)]
    with lease(ledger, *keys) as held:
        for key in keys:
            held.complete(key)
        held.check()
    assert ledger.counts() == {FILL: {"completed": 250}}
    assert len(said) < 40


def fail_a_pass(ledger, *keys: str) -> None:
    with (
        pytest.raises(TransientResourceError),
        ledger.lease(FILL, keys, "run", final=False, retry_in=timedelta(seconds=40)),
    ):
        raise TransientResourceError("down")


def test_between_passes_the_lease_is_renewed_however_long_the_next_one_takes_to_come(
    ledger, machine, monkeypatch
):
    monkeypatch.setattr("resources.ledger.lease.HEARTBEAT", timedelta(milliseconds=5))
    fail_a_pass(ledger, "a", "b")
    for _ in range(3):
        machine.advance(minutes=10)
        whole = machine() + timedelta(seconds=100)
        assert eventually(lambda whole=whole: all(the(ledger, key).lease_until == whole for key in "ab"))
        assert ledger.sweep(finished_runs=()) == []
    with lease(ledger, "a", "b"):
        assert not heartbeats(), "the pass looks after its rows itself"
        assert the(ledger, "a").attempts == 1
    assert the(ledger, "b").status == "completed"


def test_what_the_next_pass_does_not_take_is_kept_beside_it(ledger, machine, monkeypatch):
    monkeypatch.setattr("resources.ledger.lease.HEARTBEAT", timedelta(milliseconds=5))
    fail_a_pass(ledger, "a", "b")
    with lease(ledger, "a"):
        pass
    machine.advance(minutes=10)
    assert eventually(lambda: the(ledger, "b").lease_until == machine() + timedelta(seconds=100))
    with lease(ledger, "b"):
        pass
    assert eventually(lambda: not heartbeats())


def test_what_is_taken_from_a_run_between_its_passes_is_kept_no_longer(ledger, monkeypatch):
    monkeypatch.setattr("resources.ledger.lease.HEARTBEAT", timedelta(milliseconds=5))
    fail_a_pass(ledger, "a")
    assert [one.why for one in ledger.sweep(finished_runs={"run"})] == ["run_finished"]
    assert eventually(lambda: not heartbeats())
    assert the(ledger, "a").status == "queued"


def test_a_run_that_is_over_keeps_nothing_although_its_process_lives(ledger, machine, monkeypatch):
    monkeypatch.setattr("resources.ledger.lease.HEARTBEAT", timedelta(milliseconds=5))
    fail_a_pass(ledger, "a")
    pauses.end_of_run("another run")
    assert heartbeats()
    pauses.end_of_run("run")
    assert not heartbeats()
    machine.advance(seconds=101)
    assert [one.why for one in ledger.sweep(finished_runs=())] == ["lease_expired"]


def test_a_process_that_dies_between_passes_keeps_its_work_for_the_wait_and_a_lease(ledger, machine):
    fail_a_pass(ledger, "a")
    ledger.close()
    assert not heartbeats(), "with the process its threads end"
    machine.advance(seconds=99)
    assert ledger.sweep(finished_runs=()) == []
    machine.advance(seconds=2)
    assert [one.why for one in ledger.sweep(finished_runs=())] == ["lease_expired"]


def test_the_heartbeat_outlives_an_error_of_any_sort(ledger, machine, monkeypatch):
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


@pytest.mark.parametrize("character", ["\0", "\ud800"])
@pytest.mark.parametrize("final", [True, False])
def test_an_error_with_a_character_that_a_database_refuses_is_kept_without_it(ledger, final, character):
    leave_with(ledger, TransientResourceError(f"no JSON: {character}x"), "a", final=final)
    row = the(ledger, "a")
    assert (row.status, row.error) == ("deferred" if final else "running", "no JSON: \ufffdx")
    assert ledger.events(row.id)[-1].error == row.error


def test_errors_are_shortened_first_line_first(ledger):
    leave_with(ledger, TransientResourceError("\n\nfirst line\n   second\n" + "x" * 9_000), "a")
    error = the(ledger, "a").error
    assert error.splitlines()[0] == "first line"
    assert len(error) == 2_000

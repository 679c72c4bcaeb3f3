"""Leasing named keys for a run, and what each way of leaving the lease leaves in the rows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import event

from domain.shared.error import InvalidInput, PermanentRunnerError, TransientResourceError
from domain.shared.work import WorkRequest
from resources.ledger.model import LeasedElsewhere, LeaseLost
from tests.integration.resources.ledger.steps import (
    FILL,
    FINITE,
    enqueue,
    lease,
    leave_with,
    statements,
    the,
)

RETRY_IN = timedelta(seconds=40)
DOWN = TransientResourceError("down", reason_code="source_down")


class Wrapped(Exception):
    """What a framework makes of an error."""


WRAPPED = Wrapped("step failed")
WRAPPED.__cause__ = PermanentRunnerError("token wrong", reason_code="token")


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether another thread brings it about."""
    never = threading.Event()
    return any(condition() or never.wait(0.01) for _ in range(1_000))


# Opening


def test_lease__absent_and_waiting_keys__creates_and_claims_them(ledger, clock, machine):
    (row,) = enqueue(ledger, "waiting", params={"n": 1}, not_before=clock() + timedelta(hours=5))
    with lease(ledger, "waiting", "new") as held:
        assert (held.keys, held.busy) == (("waiting", "new"), {})
        assert (held.work["waiting"].id, held.work["waiting"].params) == (row.id, {"n": 1})
        found = the(ledger, "waiting")
        assert (found.status, found.run_id, found.attempts) == ("running", "run", 1)
        assert (found.started_at, found.lease_until) == (clock(), machine() + timedelta(seconds=60))


def test_lease__failed_key_by_hand__keeps_its_fingerprint_refused(ledger):
    enqueue(ledger, "a")
    leave_with(ledger, PermanentRunnerError("no"), "a")
    leave_with(ledger, PermanentRunnerError("no"), "a", run="by hand")
    assert len(ledger.find(key_prefix="a")) == 2
    assert ledger.enqueue([WorkRequest(FILL, "a", "f")]).counts["refused"] == 1


def test_lease__another_live_run_has_a_key__does_the_rest_and_names_that_run(ledger):
    with lease(ledger, "a", run="first"):
        second = lease(ledger, "a", "b", run="second")
        with pytest.raises(LeasedElsewhere, match="a is leased to first") as refusal, second:
            pass
        assert (second.keys, second.busy) == (("b",), {"a": "first"})
        assert refusal.value.reason_code == "leased_elsewhere"
        assert (the(ledger, "b").status, ledger.running()[0].key) == ("completed", "a")


# Passes of one run


def test_lease__between_two_passes__frees_the_keys_for_nobody_else(ledger, clock, machine):
    enqueue(ledger, "a")
    [sent] = ledger.dispatch(FILL, limit=1)
    leave_with(ledger, DOWN, "a", retry_in=RETRY_IN)
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
    events = [e.event for e in ledger.events(row.id)]
    assert events == ["created", "dispatched", "claimed", "pass_failed", "claimed", "completed"]


# Leaving


def test_lease__clean_end__completes_what_was_not_answered(ledger, clock):
    with lease(ledger, "a", "b", "c", "d", "e") as held:
        held.complete("a", "fresh")
        held.skip("b", "closed")
        held.defer("c", TransientResourceError("half a day"), not_before=clock() + timedelta(hours=6))
        held.fail("d", "no such day", reason_code="unknown_day")
    rows = {row.key: row for row in ledger.find()}
    assert {key: (row.status, row.reason_code) for key, row in rows.items()} == {
        "a": ("completed", "fresh"),
        "b": ("skipped", "closed"),
        "c": ("deferred", "transient"),
        "d": ("failed", "unknown_day"),
        "e": ("completed", ""),
    }
    assert rows["c"].not_before == clock() + timedelta(hours=6)


@pytest.mark.parametrize(
    ("error", "kind", "waits", "status"),
    [
        (DOWN, FILL, [60, 120, 240, 480, 960, 1920, 3600, 3600], "deferred"),
        (TransientResourceError("slow down", retry_after=timedelta(seconds=42)), FILL, [42, 42], "deferred"),
        (DOWN, FINITE, [10, 20], "failed"),
        (ZeroDivisionError("oops"), FILL, [5, 25], "failed"),
    ],
    ids=["transient", "retry_after", "maximum", "unclassified"],
)
def test_lease__same_error_with_each_run__backs_off_or_fails(ledger, clock, error, kind, waits, status):
    found = []
    for attempt in range(len(waits) + (status == "failed")):
        leave_with(ledger, error, "a", run=f"run {attempt}", kind=kind)
        row = the(ledger, "a")
        if row.status == "deferred":
            found.append((row.not_before - clock()).total_seconds())
            clock.now = row.not_before
    assert (found, row.status) == (waits, status)


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (PermanentRunnerError("token wrong", reason_code="token"), "permanent", "token"),
        (InvalidInput("no calendar"), "invalid_input", "invalid_input"),
        (WRAPPED, "permanent", "token"),
    ],
)
def test_lease__hopeless_error__fails_at_once(ledger, error, kind, reason):
    leave_with(ledger, error, "a", retry_in=RETRY_IN)
    row = the(ledger, "a")
    assert (row.status, row.error_kind, row.reason_code) == ("failed", kind, reason)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_lease__interrupted__gives_the_work_back_uncounted(ledger, clock, error):
    leave_with(ledger, error, "a")
    row = the(ledger, "a")
    assert (row.status, row.attempts, row.not_before, row.run_id) == ("queued", 0, clock(), None)


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


def test_answer__twice_or_for_an_unknown_key__is_refused(ledger):
    with lease(ledger, "a") as held:
        held.complete("a")
        with pytest.raises(ValueError, match="answered"):
            held.fail("a", "but then")
        with pytest.raises(KeyError, match="b is not leased"):
            held.complete("b")


def test_heartbeat__while_the_body_works__renews_and_writes_answers_after_any_error(
    ledger, machine, monkeypatch
):
    monkeypatch.setattr("resources.ledger.lease.HEARTBEAT", timedelta(milliseconds=5))
    refused = threading.Event()

    def refuse(*_: object) -> None:
        if not refused.is_set():
            refused.set()
            raise ValueError("what no driver should raise")

    with ledger.lease(FILL, ["a", "b"], "run") as held:
        event.listen(ledger.engine, "before_cursor_execute", refuse)
        assert refused.wait(10)
        held.complete("a")
        machine.advance(seconds=30)
        renewed = machine() + timedelta(seconds=60)
        assert eventually(lambda: the(ledger, "a").status == "completed")
        assert eventually(lambda: the(ledger, "b").lease_until == renewed)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lease of")]


def test_lease__250_keys__is_a_handful_of_statements(ledger):
    keys = [f"d{n}" for n in range(250)]
    with statements(ledger) as sent, lease(ledger, *keys) as held:
        for key in keys:
            held.complete(key)
        held.check()
    assert ledger.counts() == {FILL: {"completed": 250}}
    assert len(sent) < 40


def test_lease__error_with_a_character_databases_refuse__is_kept_without_it(ledger):
    leave_with(ledger, TransientResourceError("no JSON: \0x"), "a")
    row = the(ledger, "a")
    assert (row.error, ledger.events(row.id)[-1].error) == ("no JSON: \ufffdx", row.error)

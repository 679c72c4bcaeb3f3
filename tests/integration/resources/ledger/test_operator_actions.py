"""Retry, cancel, supersede: and which finished rows then still count."""

from __future__ import annotations

import pytest

from domain.shared.error import InvalidInput, PermanentRunnerError, TransientResourceError
from domain.shared.work import WorkRequest
from resources.ledger.client import Ledger
from resources.ledger.model import LeaseLost
from tests.integration.resources.ledger.steps import FILL, FINITE, claimed, enqueue, lease, leave_with


def request(fingerprint: str = "f1", **more: object) -> WorkRequest:
    return WorkRequest(FILL, "day", fingerprint, **more)


def is_refused(ledger: Ledger, *fingerprints: str) -> bool:
    return all(ledger.enqueue([request(one)]).counts["refused"] == 1 for one in fingerprints)


def fail(ledger: Ledger, fingerprint: str, run: str = "run that fails") -> None:
    ledger.enqueue([request(fingerprint)])
    leave_with(ledger, PermanentRunnerError("no"), "day", run=run)


def succeed(ledger: Ledger, fingerprint: str, run: str = "run that succeeds") -> None:
    ledger.enqueue([request(fingerprint)])
    with lease(ledger, "day", run=run):
        pass


def cancel(ledger: Ledger, fingerprint: str) -> int:
    """Work that is cancelled before it was tried."""
    (row,) = ledger.enqueue([request(fingerprint)]).created
    return ledger.cancel(row.id).id


def cancel_behind_a_run_that_fails(ledger: Ledger) -> int:
    """f2 is requested while f1 is tried, and cancelled; only then f1 fails."""
    ledger.enqueue([request("f1")])
    with lease(ledger, "day") as held:
        number = cancel(ledger, "f2")
        held.fail("day", PermanentRunnerError("no"))
    return number


def shown(ledger: Ledger) -> dict[str, str]:
    return {row.fingerprint: row.status for row in ledger.current([FILL])}


def running(ledger: Ledger, kind: str = FILL):
    enqueue(ledger, "a", kind=kind)
    return claimed(ledger, kind)


# Retry and cancel


def test_retry__deferred_row__is_due_now(ledger, clock):
    row = running(ledger)
    ledger.defer(row, "later")
    again = ledger.retry(row.id)
    assert (again.id, again.status, again.not_before, again.attempts) == (row.id, "queued", clock(), 1)


def test_retry__failed_row__gets_one_new_generation(ledger):
    row = running(ledger, kind=FINITE)
    ledger.fail(row, "no")
    again = ledger.retry(row.id)
    assert (again.parent_id, again.fingerprint, again.attempts, again.status) == (row.id, "f", 0, "queued")
    assert ledger.get(row.id).status == "failed", "history stays"
    assert ledger.retry(row.id).id == again.id, "a second retry is the same request"


def test_retry__two_finished_rows_of_a_key__takes_the_named_one_if_it_counts(ledger):
    cancelled = cancel_behind_a_run_that_fails(ledger)
    (failed,) = ledger.find(status="failed")
    assert failed.id < cancelled
    assert ledger.retry(failed.id).parent_id == failed.id


def test_cancel__waiting_and_running_rows__ends_them_for_their_holders_too(ledger):
    (waiting,) = enqueue(ledger, "w")
    assert ledger.cancel(waiting.id).status == "cancelled"
    row = running(ledger)
    cancelled = ledger.cancel(row.id)
    assert (cancelled.status, cancelled.run_id) == ("cancelled", "worker:1")
    assert ledger.cancel(row.id) == cancelled, "twice is once"
    with pytest.raises(LeaseLost):
        ledger.complete(row)


def test_retry_and_cancel__wrong_state_or_unknown_work__are_refused(ledger):
    row = running(ledger)

    def refusal(act, number: int) -> str:
        with pytest.raises(InvalidInput) as refused:
            act(number)
        return refused.value.reason_code

    assert refusal(ledger.retry, row.id) == "already_running"
    ledger.complete(row)
    assert refusal(ledger.cancel, row.id) == "already_finished"
    assert {refusal(act, n) for act in (ledger.retry, ledger.cancel) for n in (2**60, 2**70)} == {
        "unknown_work"
    }


def test_supersede__rows_changed_since_they_were_seen__ends_only_the_others(ledger):
    seen = enqueue(ledger, "sent", "as seen", "runs", "requested anew", "done")
    assert ledger.dispatch(FILL, limit=1)[0].keys == ("sent",)
    ledger.enqueue([WorkRequest(FILL, "requested anew", "g")])
    with lease(ledger, "done"):
        pass
    with lease(ledger, "runs") as held:
        ended = ledger.supersede(seen, reason_code="outside_window")
        held.check()
    assert [(row.key, row.status, row.reason_code) for row in ended] == [
        ("as seen", "superseded", "outside_window")
    ]
    assert [row.key for row in ledger.find(FILL, status="superseded")] == ["as seen"]
    assert ledger.supersede([]) == []


# Which finished rows count


def test_enqueue__cancelled_behind_a_run_that_then_failed__refuses_both(ledger):
    cancel_behind_a_run_that_fails(ledger)
    assert is_refused(ledger, "f1", "f2")
    assert shown(ledger) == {"f1": "failed", "f2": "cancelled"}


def test_enqueue__superseded_row__refuses_nothing_and_takes_no_refusal_back(ledger, clock):
    fail(ledger, "f0")
    ledger.retry(ledger.find()[0].id)
    with lease(ledger, "day") as held:
        ledger.enqueue([request("f2")])
        held.defer("day", TransientResourceError("down"))
    ledger.cancel(ledger.find(status="deferred")[0].id)
    assert shown(ledger) == {"f0": "failed", "f2": "cancelled"}
    clock.advance(days=100)
    assert ledger.purge(clock()) == 1, "the superseded row"
    assert is_refused(ledger, "f0", "f2")


def test_purge__old_rows__keeps_every_refusal_that_counts_and_no_other(ledger, clock):
    fail(ledger, "f0")
    fail(ledger, "f1", "second")
    cancel(ledger, "f2")
    clock.advance(days=100)
    assert ledger.purge(clock()) == 1
    assert is_refused(ledger, "f1", "f2")
    succeed(ledger, "f3")
    clock.advance(days=100)
    assert ledger.purge(clock()) == 3
    assert ledger.find() == []


def test_requested_by_person__row_has_other_reasons_by_now__is_still_found(ledger):
    names = ("by the plan", "requested", "retried", "requested while deferred")
    rows = {
        name: enqueue(ledger, name, reason_code="requested" if name == "requested" else "missing")[0].id
        for name in names
    }
    ledger.retry(rows["retried"])
    with lease(ledger, *names) as held:
        for name in names:
            held.defer(name, "the lake is busy", reason_code="lake_busy")
    ledger.enqueue([WorkRequest(FILL, "requested while deferred", "g", reason_code="requested")])
    ledger.enqueue([WorkRequest(FILL, name, "h", reason_code="changed") for name in names])
    assert ledger.requested_by_person(rows.values()) == {rows[name] for name in names[1:]}
    assert ledger.requested_by_person([]) == frozenset()


def test_hurry__row_waits_for_its_next_attempt__is_due_now_for_its_old_reason(ledger, clock):
    leave_with(ledger, TransientResourceError("HTTP 503", reason_code="source_down"), "day")
    [waits] = ledger.find(FILL)
    [hurried] = ledger.hurry([waits])
    assert (hurried.status, hurried.not_before) == ("queued", clock())
    assert (hurried.reason_code, hurried.attempts) == ("source_down", 1)
    assert not ledger.requested_by_person([hurried.id])
    assert ledger.hurry([waits]) == [], "it is not as it was seen"


def test_release_run__run_is_interrupted__gives_back_what_it_holds_and_its_late_answers_change_nothing(
    ledger, clock
):
    held = lease(ledger, "a", "b", run="ours").__enter__()
    held.complete("a")
    held.check()
    [released] = ledger.release_run("ours")
    with pytest.raises(LeaseLost):
        held.check()
    assert (released.key, released.status, released.not_before) == ("b", "queued", clock())
    assert (released.attempts, released.deaths, released.reason_code) == (0, 0, "interrupted")
    assert ledger.get(released.id) == released
    assert ledger.completed_by(["ours", "another"]) == {"a": 1}

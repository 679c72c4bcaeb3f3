"""Retry, cancel, supersede: and which finished rows then still count."""

from __future__ import annotations

import pytest

from domain.shared.error import InvalidInput, PermanentRunnerError, TransientResourceError
from domain.shared.work import WorkRequest
from resources.ledger.client import Ledger
from resources.ledger.model import LeaseLost

FILL, FINITE = "market.fill", "records.hook"


def request(fingerprint: str = "f1", **more: object) -> WorkRequest:
    return WorkRequest(FILL, "day", fingerprint, **more)


def is_refused(ledger: Ledger, *fingerprints: str) -> bool:
    return all(ledger.enqueue([request(one)]).counts["refused"] == 1 for one in fingerprints)


def is_created(ledger: Ledger, fingerprint: str) -> bool:
    return ledger.enqueue([request(fingerprint)]).counts["created"] == 1


def fail(ledger: Ledger, fingerprint: str, run: str = "run that fails") -> None:
    ledger.enqueue([request(fingerprint)])
    with pytest.raises(PermanentRunnerError), ledger.lease(FILL, ["day"], run, heartbeat=False):
        raise PermanentRunnerError("no")


def succeed(ledger: Ledger, fingerprint: str, run: str = "run that succeeds") -> None:
    ledger.enqueue([request(fingerprint)])
    with ledger.lease(FILL, ["day"], run, heartbeat=False):
        pass


def cancel(ledger: Ledger, fingerprint: str) -> int:
    """Work that is cancelled before it was tried."""
    (row,) = ledger.enqueue([request(fingerprint)]).created
    return ledger.cancel(row.id).id


def cancel_behind_a_run_that_fails(ledger: Ledger) -> int:
    """f2 is requested while f1 is tried, and cancelled; only then f1 fails."""
    ledger.enqueue([request("f1")])

    def run() -> int:
        with ledger.lease(FILL, ["day"], "run", heartbeat=False) as lease:
            number = cancel(ledger, "f2")
            lease.fail("day", PermanentRunnerError("no"))
            return number

    return run()


def shown(ledger: Ledger) -> dict[str, str]:
    return {row.fingerprint: row.status for row in ledger.current([FILL])}


def claimed(ledger: Ledger, kind: str = FILL):
    ledger.enqueue([WorkRequest(kind, "a", "f")])
    (row,) = ledger.claim(kind, holder="worker:1", limit=1)
    return row


# Retry and cancel


def test_retry__deferred_row__is_due_now(ledger, clock):
    row = claimed(ledger)
    ledger.defer(row, "later")
    again = ledger.retry(row.id)
    assert (again.id, again.status, again.not_before, again.attempts) == (row.id, "queued", clock(), 1)
    assert len(ledger.dispatch(FILL, limit=1)) == 1


def test_retry__failed_row__gets_one_new_generation(ledger):
    row = claimed(ledger, kind=FINITE)
    ledger.fail(row, "no")
    again = ledger.retry(row.id)
    assert (again.parent_id, again.fingerprint, again.attempts, again.status) == (row.id, "f", 0, "queued")
    assert ledger.get(row.id).status == "failed", "history stays"
    assert ledger.retry(row.id).id == again.id, "a second retry is the same request"


def test_retry__running_or_unknown_work__is_refused(ledger):
    row = claimed(ledger)
    for number, code in ((row.id, "already_running"), (2**60, "unknown_work"), (2**70, "unknown_work")):
        with pytest.raises(InvalidInput) as refusal:
            ledger.retry(number)
        assert refusal.value.reason_code == code


def test_retry__one_of_two_finished_rows__takes_the_named_one_if_it_counts(ledger):
    number = cancel_behind_a_run_that_fails(ledger)
    failed, cancelled = sorted(ledger.find(), key=lambda row: row.id)
    assert cancelled.id == number
    again = ledger.retry(failed.id)
    assert (again.parent_id, again.fingerprint) == (failed.id, "f1")


def test_retry__row_that_counts_no_more__takes_what_came_after(ledger):
    fail(ledger, "f1")
    old = ledger.find()[0].id
    fail(ledger, "f2", "second")
    again = ledger.retry(old)
    assert (again.parent_id, again.fingerprint) == (ledger.find(status="failed")[0].id, "f2")


def test_cancel__waiting_and_running_rows__ends_them_for_their_holders_too(ledger):
    waiting = ledger.enqueue([WorkRequest(FILL, "w", "f")]).created[0]
    assert ledger.cancel(waiting.id).status == "cancelled"
    row = claimed(ledger)
    cancelled = ledger.cancel(row.id)
    assert (cancelled.status, cancelled.run_id) == ("cancelled", "worker:1")
    assert ledger.cancel(row.id) == cancelled, "twice is once"
    with pytest.raises(LeaseLost):
        ledger.complete(row)


def test_cancel__finished_or_unknown_work__is_refused(ledger):
    row = claimed(ledger)
    ledger.complete(row)
    for number, code in ((row.id, "already_finished"), (2**60, "unknown_work")):
        with pytest.raises(InvalidInput) as refusal:
            ledger.cancel(number)
        assert refusal.value.reason_code == code


def test_supersede__rows_changed_since_they_were_seen__ends_only_the_others(ledger):
    names = ["sent", "as seen", "runs", "requested anew", "done"]
    seen = ledger.enqueue([WorkRequest(FILL, name, "f") for name in names]).created
    assert ledger.dispatch(FILL, limit=1)[0].keys == ("sent",)
    ledger.enqueue([WorkRequest(FILL, "requested anew", "g")])
    with ledger.lease(FILL, ["done"], "run", heartbeat=False):
        pass
    with ledger.lease(FILL, ["runs"], "run", heartbeat=False) as held:
        ended = ledger.supersede(seen, reason_code="outside_window")
        held.check()
    assert [(row.key, row.status, row.reason_code) for row in ended] == [
        ("as seen", "superseded", "outside_window")
    ]
    assert {row.key: row.status for row in ledger.find(FILL)} == {
        "as seen": "superseded",
        "runs": "completed",
        "sent": "queued",
        "requested anew": "queued",
        "done": "completed",
    }
    assert ledger.supersede([]) == []


# Which finished rows count


def test_enqueue__refused_and_then_another_cancelled__refuses_both(ledger):
    fail(ledger, "f1")
    cancel(ledger, "f2")
    assert is_refused(ledger, "f1", "f2")
    assert is_created(ledger, "f3")


def test_enqueue__cancelled_behind_a_run_that_then_failed__refuses_both(ledger):
    cancel_behind_a_run_that_fails(ledger)
    assert is_refused(ledger, "f1", "f2")
    assert shown(ledger) == {"f1": "failed", "f2": "cancelled"}


@pytest.mark.parametrize("end", [fail, succeed])
def test_enqueue__tried_to_the_end_since__refuses_nothing_older(ledger, end):
    fail(ledger, "f1")
    cancel(ledger, "f2")
    end(ledger, "f3")
    assert is_created(ledger, "f2")


def test_enqueue__success_that_was_cancelled_afterwards__is_refused(ledger):
    succeed(ledger, "f1")
    cancel(ledger, "f1")
    assert is_refused(ledger, "f1")


def test_enqueue__superseded_row__refuses_nothing_and_takes_no_refusal_back(ledger, clock):
    fail(ledger, "f0")
    ledger.retry(ledger.find()[0].id)

    def run() -> None:
        with ledger.lease(FILL, ["day"], "run", heartbeat=False):
            ledger.enqueue([request("f2")])
            raise TransientResourceError("down")

    with pytest.raises(TransientResourceError):
        run()
    ledger.cancel(ledger.find(status="deferred")[0].id)
    assert shown(ledger) == {"f0": "failed", "f2": "cancelled"}
    clock.advance(days=100)
    assert ledger.purge(clock()) == 1, "the superseded row"
    assert is_refused(ledger, "f0", "f2")


def test_lease__by_hand__carries_the_fingerprint_requested_last(ledger):
    fail(ledger, "f1")
    cancel(ledger, "f2")
    by_hand = ledger.lease(FILL, ["day"], "by hand", heartbeat=False)
    with pytest.raises(PermanentRunnerError), by_hand:
        raise PermanentRunnerError("no")
    assert ledger.find()[0].fingerprint == "f2"


@pytest.mark.parametrize("meanwhile", ["f1", "f2"])
def test_lease__run_completed_the_key_and_more_happened_since__is_done(ledger, meanwhile):
    succeed(ledger, "f1", "run")
    if meanwhile == "f1":
        cancel(ledger, "f1")
    else:
        succeed(ledger, "f2", "another run")
    with ledger.lease(FILL, ["day"], "run", heartbeat=False) as again:
        assert (again.keys, again.done) == ((), ("day",))
    assert len(ledger.find()) == 2


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
    for name in names:
        reason = "requested" if name == "requested" else "missing"
        ledger.enqueue([WorkRequest(FILL, name, "f", reason_code=reason)])
    rows = {row.key: row.id for row in ledger.find(FILL)}
    ledger.retry(rows["retried"])
    with ledger.lease(FILL, names, "run", heartbeat=False) as held:
        for name in names:
            held.defer(name, "the lake is busy", reason_code="lake_busy")
    ledger.enqueue([WorkRequest(FILL, "requested while deferred", "g", reason_code="requested")])
    ledger.enqueue([WorkRequest(FILL, name, "h", reason_code="changed") for name in names])
    assert ledger.requested_by_person(rows.values()) == {rows[name] for name in names[1:]}
    assert ledger.requested_by_person([]) == frozenset()

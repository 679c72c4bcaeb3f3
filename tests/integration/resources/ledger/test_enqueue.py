"""Enqueueing: every state a key may be in, and what the next request for it does."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import event

from domain.shared.error import InvalidInput
from domain.shared.work import WorkRequest
from resources.ledger.client import Ledger

FILL = "market.fill"


def request(key: str = "day", fingerprint: str = "f1", **more: object) -> WorkRequest:
    return WorkRequest(FILL, key, fingerprint, **more)


def end(ledger: Ledger, key: str = "day", verb: str = "complete") -> None:
    with ledger.lease(FILL, [key], f"run that will {verb}", heartbeat=False) as lease:
        if verb == "fail":
            lease.fail(key, "hopeless")
        elif verb == "skip":
            lease.skip(key, "closed")


def test_enqueue__new_key__creates_a_row_as_requested(ledger, clock):
    later = clock() + timedelta(hours=1)
    report = ledger.enqueue(
        [request(reason_code="missing", params={"table": "daily"}, tenant="a", priority=3, not_before=later)]
    )
    row = ledger.get(report.created[0].id)
    assert row == report.created[0]
    assert (row.status, row.reason_code, row.params, row.tenant, row.priority, row.not_before) == (
        "queued", "missing", {"table": "daily"}, "a", 3, later,
    )  # fmt: skip
    assert (row.created_at, row.finished_at, row.started_at) == (clock(), None, None)


def test_enqueue__same_requests_again__takes_no_write_lock(ledger, clock):
    items = [request(f"d{n}", params={"n": n}, pipelines=("p",)) for n in range(5)]
    first = ledger.enqueue(items)
    clock.advance(minutes=5)
    statements: list[str] = []
    event.listen(ledger.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    with ledger.engine.connect().execution_options(ledger_writes=True) as other, other.begin():
        assert ledger.enqueue(items).counts == {"created": 0, "updated": 0, "absorbed": 5, "refused": 0}
    assert not [text for text in statements if text.startswith(("INSERT", "UPDATE")) or "FOR UPDATE" in text]
    assert [event.event for event in ledger.events(first.created[0].id)] == ["created"]


def test_enqueue__two_requests_for_one_key__keeps_the_last(ledger):
    report = ledger.enqueue([request(fingerprint="f1"), request(fingerprint="f2")])
    assert [row.fingerprint for row in report.created] == ["f2"]
    assert len(ledger.enqueue([WorkRequest("records.hook", "day", "f1")]).created) == 1, "another kind"


def test_enqueue__waiting_row__takes_the_newer_request(ledger, clock):
    (row,) = ledger.enqueue([request(not_before=clock() + timedelta(hours=6))]).created
    (updated,) = ledger.enqueue([request(fingerprint="f2", priority=9, params={"a": 1})]).updated
    assert (updated.id, updated.fingerprint, updated.priority, updated.params) == (row.id, "f2", 9, {"a": 1})
    assert updated.not_before == clock(), "the old request's date went with the old request"
    assert ledger.get(row.id) == updated


def test_enqueue__deferred_row__keeps_its_backoff_and_reason(ledger, clock):
    ledger.enqueue([request()])
    with ledger.lease(FILL, ["day"], "run", heartbeat=False) as lease:
        lease.defer("day", "source down")
    (deferred,) = ledger.find(status="deferred")
    (updated,) = ledger.enqueue([request(fingerprint="f2", reason_code="missing")]).updated
    assert updated.not_before == deferred.not_before > clock()
    assert (updated.attempts, updated.reason_code) == (1, "transient")


def test_enqueue__dispatched_row__leaves_its_run_alone(ledger, clock):
    ledger.enqueue([request()])
    (sent,) = ledger.dispatch(FILL, limit=1)
    (updated,) = ledger.enqueue([request(fingerprint="f2")]).updated
    assert (updated.dispatch_id, updated.not_before) == (sent.id, clock() + timedelta(seconds=120))


def test_enqueue__running_row__absorbs_the_same_and_queues_another_request(ledger):
    with ledger.lease(FILL, ["day"], "run", heartbeat=False, fingerprints={"day": "f1"}):
        assert ledger.enqueue([request()]).counts["absorbed"] == 1
        (behind,) = ledger.enqueue([request(fingerprint="f2")]).created
        assert ledger.dispatch(FILL, limit=9) == []
        assert ledger.claim(FILL, holder="worker:a", limit=9) == []
    assert [sent.rows[0].id for sent in ledger.dispatch(FILL, limit=9)] == [behind.id]


def test_enqueue__ended_well_but_requested_again_at_once__waits_longer_and_longer(ledger, clock):
    waits = []
    for _ in range(6):
        (row,) = ledger.enqueue([request()]).created
        waits.append((row.not_before - clock()).total_seconds())
        end(ledger)
    assert waits == [0, 0, 0, 30, 60, 120]


@pytest.mark.parametrize("why", ["another fingerprint", "a quiet while"])
def test_enqueue__recurrence_ended__is_due_at_once(ledger, clock, why):
    for _ in range(4):
        ledger.enqueue([request()])
        end(ledger)
    if why == "a quiet while":
        clock.advance(seconds=61)
    (row,) = ledger.enqueue([request(fingerprint="f2" if why == "another fingerprint" else "f1")]).created
    assert (row.recurrence, row.not_before) == (0, clock())


@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_enqueue__failed_or_cancelled__is_refused_until_the_fingerprint_is_new(ledger, how):
    (row,) = ledger.enqueue([request()]).created
    if how == "failed":
        end(ledger, verb="fail")
    else:
        ledger.cancel(row.id)
    assert ledger.enqueue([request()]).counts["refused"] == 1
    assert ledger.enqueue([request(fingerprint="f2")]).counts["created"] == 1


def test_enqueue__superseded__is_created_again(ledger):
    rows = ledger.enqueue([request()]).created
    ledger.supersede(rows, reason_code="done_meanwhile")
    assert ledger.enqueue([request()]).counts["created"] == 1


@pytest.mark.parametrize("verb", ["complete", "skip", "fail"])
def test_enqueue__event_that_was_done_once__is_absorbed(ledger, verb):
    ledger.enqueue([request(once=True)])
    end(ledger, verb=verb)
    report = ledger.enqueue([request(fingerprint="f2", once=True)])
    assert report.counts == {"created": 0, "updated": 0, "absorbed": 1, "refused": 0}


def test_enqueue__too_large_params_or_unknown_kind__is_refused(ledger):
    with pytest.raises(InvalidInput) as refusal:
        ledger.enqueue([request(params={"sql": "x" * 5_000})])
    assert refusal.value.reason_code == "params_too_large"
    with pytest.raises(InvalidInput) as refusal:
        ledger.enqueue([WorkRequest("market.fil", "day", "f1")])
    assert refusal.value.reason_code == "unknown_kind"


def test_enqueue__thousands_of_requests__is_a_handful_of_statements(ledger):
    statements: list[str] = []
    event.listen(ledger.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    report = ledger.enqueue([request(f"d{n}") for n in range(1_500)])
    assert len(report.created) == 1_500
    assert {row.key: row.id for row in report.created} == {row.key: row.id for row in ledger.find(limit=None)}
    assert len(statements) < 60

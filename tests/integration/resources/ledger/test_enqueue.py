"""Enqueueing: every state a key may be in, and what the next request for it does."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.shared.error import InvalidInput
from domain.shared.work import WorkRequest
from resources.ledger.client import Ledger
from tests.integration.resources.ledger.steps import FILL, lease, statements


def request(key: str = "day", fingerprint: str = "f1", **more: object) -> WorkRequest:
    return WorkRequest(FILL, key, fingerprint, **more)


def end(ledger: Ledger, verb: str = "complete") -> None:
    with lease(ledger, "day", run=f"run that will {verb}") as held:
        if verb == "fail":
            held.fail("day", "hopeless")
        elif verb == "skip":
            held.skip("day", "closed")


def test_enqueue__new_key__creates_a_row_as_requested(ledger, clock):
    later = clock() + timedelta(hours=1)
    wanted = {"reason_code": "missing", "params": {"table": "daily"}, "tenant": "a", "priority": 3}
    (row,) = ledger.enqueue([request(**wanted, not_before=later)]).created
    assert ledger.get(row.id) == row
    assert {name: getattr(row, name) for name in wanted} == wanted
    assert (row.status, row.not_before, row.created_at, row.finished_at) == ("queued", later, clock(), None)


def test_enqueue__same_requests_again__takes_no_write_lock(ledger, clock):
    items = [request(f"d{n}", params={"n": n}, pipelines=("p",)) for n in range(5)]
    ledger.enqueue(items)
    clock.advance(minutes=5)
    other = ledger.engine.connect().execution_options(ledger_writes=True)
    with statements(ledger) as sent, other, other.begin():
        assert ledger.enqueue(items).counts == {"created": 0, "updated": 0, "absorbed": 5, "refused": 0}
    assert not [text for text in sent if text.startswith(("INSERT", "UPDATE")) or "FOR UPDATE" in text]


def test_enqueue__waiting_row__takes_the_newer_request(ledger, clock):
    (row,) = ledger.enqueue([request(not_before=clock() + timedelta(hours=6))]).created
    newer = [request(fingerprint="of the same batch"), request(fingerprint="f2", priority=9, params={"a": 1})]
    (updated,) = ledger.enqueue(newer).updated
    assert (updated.id, updated.fingerprint, updated.priority, updated.params) == (row.id, "f2", 9, {"a": 1})
    assert updated.not_before == clock(), "the old request's date went with the old request"
    assert ledger.get(row.id) == updated


def test_enqueue__request_without_params__keeps_those_of_the_waiting_one(ledger):
    """A plan gives none: what a person accepted stays until it was done."""
    ledger.enqueue([request(params={"may_shrink": True})])
    (updated,) = ledger.enqueue([request(fingerprint="f2")]).updated
    assert (updated.fingerprint, updated.params) == ("f2", {"may_shrink": True})


def test_enqueue__deferred_row__keeps_its_backoff_and_reason(ledger, clock):
    ledger.enqueue([request()])
    with lease(ledger, "day") as held:
        held.defer("day", "source down")
    (deferred,) = ledger.find(status="deferred")
    (updated,) = ledger.enqueue([request(fingerprint="f2", reason_code="missing")]).updated
    assert updated.not_before == deferred.not_before > clock()
    assert (updated.attempts, updated.reason_code) == (1, "transient")


def test_enqueue__ended_well_but_requested_again_at_once__waits_longer_until_it_is_quiet(ledger, clock):
    waits = []
    for _ in range(6):
        (row,) = ledger.enqueue([request()]).created
        waits.append((row.not_before - clock()).total_seconds())
        end(ledger)
    assert waits == [0, 0, 0, 30, 60, 120]
    clock.advance(seconds=61)
    (row,) = ledger.enqueue([request()]).created
    assert (row.recurrence, row.not_before) == (0, clock())


@pytest.mark.parametrize(
    ("verb", "once", "counted", "of_a_new_fingerprint"),
    [
        ("fail", False, "refused", "created"),
        ("cancel", False, "refused", "created"),
        ("supersede", False, "created", "updated"),
        ("complete", False, "created", "updated"),
        ("complete", True, "absorbed", "absorbed"),
        ("skip", True, "absorbed", "absorbed"),
        ("fail", True, "absorbed", "absorbed"),
    ],
)
def test_enqueue__finished_row__decides_about_the_next_request(
    ledger, verb, once, counted, of_a_new_fingerprint
):
    (row,) = ledger.enqueue([request(once=once)]).created
    if verb == "cancel":
        ledger.cancel(row.id)
    elif verb == "supersede":
        ledger.supersede([row], reason_code="done_meanwhile")
    else:
        end(ledger, verb)
    assert ledger.enqueue([request(once=once)]).counts[counted] == 1
    assert ledger.enqueue([request(fingerprint="f2", once=once)]).counts[of_a_new_fingerprint] == 1


@pytest.mark.parametrize(
    ("wrong", "reason_code"),
    [
        (request(params={"sql": "x" * 5_000}), "params_too_large"),
        (WorkRequest("market.fil", "day", "f1"), "unknown_kind"),
    ],
)
def test_enqueue__too_large_params_or_unknown_kind__is_refused(ledger, wrong, reason_code):
    with pytest.raises(InvalidInput) as refusal:
        ledger.enqueue([wrong])
    assert refusal.value.reason_code == reason_code


def test_enqueue__thousands_of_requests__is_a_handful_of_statements(ledger):
    with statements(ledger) as sent:
        report = ledger.enqueue([request(f"d{n}") for n in range(1_500)])
    assert {row.key: row.id for row in report.created} == {row.key: row.id for row in ledger.find(limit=None)}
    assert len(sent) < 40

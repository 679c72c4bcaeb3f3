"""Which finished rows of a key still speak: a wish called off hides no refusal, a verdict ends them all."""

from __future__ import annotations

import pytest

from domain.shared.error import PermanentRunnerError, TransientResourceError
from domain.shared.work import WorkRequest
from resources.ledger.attention import attention
from resources.ledger.client import LeaseLost, Ledger
from resources.ledger.standing import DONE_MEANWHILE

FILL = "market.fill"


def request(fingerprint: str = "f1", **more: object) -> WorkRequest:
    return WorkRequest(FILL, "day", fingerprint, **more)


def refuses(ledger: Ledger, *fingerprints: str) -> bool:
    return all(ledger.enqueue([request(one)]).counts["refused"] == 1 for one in fingerprints)


def is_born(ledger: Ledger, fingerprint: str) -> bool:
    return ledger.enqueue([request(fingerprint)]).counts["created"] == 1


def fails(ledger: Ledger, fingerprint: str, run: str = "run that fails") -> None:
    ledger.enqueue([request(fingerprint)])
    with pytest.raises(PermanentRunnerError), ledger.lease(FILL, ["day"], run, heartbeat=False):
        raise PermanentRunnerError("no")


def succeeds(ledger: Ledger, fingerprint: str, run: str = "run that succeeds") -> None:
    ledger.enqueue([request(fingerprint)])
    with ledger.lease(FILL, ["day"], run, heartbeat=False):
        pass


def called_off(ledger: Ledger, fingerprint: str) -> int:
    """A wish that ends before anybody tried."""
    (row,) = ledger.enqueue([request(fingerprint)]).created
    return ledger.cancel(row.id).id


def called_off_behind_a_run_that_fails(ledger: Ledger) -> int:
    """f2 is wished for while f1 is tried, and called off; only then f1 fails."""
    ledger.enqueue([request("f1")])

    def run() -> int:
        with ledger.lease(FILL, ["day"], "run", heartbeat=False) as lease:
            number = called_off(ledger, "f2")
            lease.fail("day", PermanentRunnerError("no"))
            return number

    return run()


# Wishes


def test_work_called_off_because_it_was_done_can_be_wished_for_again(ledger: Ledger) -> None:
    (row,) = ledger.enqueue([request("f1")]).created
    ledger.cancel(row.id, reason_code=DONE_MEANWHILE)
    assert is_born(ledger, "f1")


def test_a_refusal_outlives_a_wish_that_was_called_off(ledger):
    fails(ledger, "f1")
    called_off(ledger, "f2")
    assert refuses(ledger, "f1", "f2")
    assert is_born(ledger, "f3")


def test_a_refusal_counts_although_a_later_wish_was_called_off_before_it(ledger):
    called_off_behind_a_run_that_fails(ledger)
    assert refuses(ledger, "f1", "f2")


def test_a_person_may_give_up_one_reason_after_another(ledger):
    for fingerprint in ("f1", "f2", "f3"):
        called_off(ledger, fingerprint)
    assert refuses(ledger, "f1", "f2", "f3")


@pytest.mark.parametrize("end", [fails, succeeds])
def test_what_was_tried_to_its_end_ends_every_refusal_before_it(ledger, end):
    fails(ledger, "f1")
    called_off(ledger, "f2")
    end(ledger, "f3")
    assert is_born(ledger, "f2")


def test_a_failure_that_was_tried_again_with_success_is_none(ledger):
    fails(ledger, "f1")
    ledger.retry(ledger.find()[0].id)
    succeeds(ledger, "f1")
    assert is_born(ledger, "f1")


def test_a_success_that_was_given_up_afterwards_is_given_up(ledger):
    succeeds(ledger, "f1")
    called_off(ledger, "f1")
    assert refuses(ledger, "f1")


def test_repeats_are_counted_across_a_wish_that_was_called_off(ledger):
    for _ in range(3):
        succeeds(ledger, "f1")
    called_off(ledger, "f2")
    (row,) = ledger.enqueue([request("f1")]).created
    assert row.repeats == 3


def test_who_made_way_for_a_newer_wish_refuses_nothing(ledger):
    """f1 only waited to be tried again; f2, which took its place, is given up."""
    ledger.enqueue([request("f1")])

    def run() -> None:
        with ledger.lease(FILL, ["day"], "run", heartbeat=False):
            ledger.enqueue([request("f2")])
            raise TransientResourceError("down")

    with pytest.raises(TransientResourceError):
        run()
    ledger.cancel(ledger.find(status="deferred")[0].id)
    assert refuses(ledger, "f2")
    assert is_born(ledger, "f1")


def test_an_event_that_was_called_off_is_over_for_all_time(ledger):
    (row,) = ledger.enqueue([request("f1", once=True)]).created
    ledger.cancel(row.id)
    assert ledger.enqueue([request("f2", once=True)]).counts["absorbed"] == 1


# Runs


def test_a_run_by_hand_carries_what_was_asked_for_last(ledger):
    fails(ledger, "f1")
    called_off(ledger, "f2")
    fails_by_hand = ledger.lease(FILL, ["day"], "by hand", heartbeat=False)
    with pytest.raises(PermanentRunnerError), fails_by_hand:
        raise PermanentRunnerError("no")
    assert ledger.find()[0].fingerprint == "f2"


@pytest.mark.parametrize("meanwhile", ["f1", "f2"])
def test_what_a_run_has_done_is_done_although_a_later_wish_was_called_off(ledger, meanwhile):
    succeeds(ledger, "f1", "run")
    called_off(ledger, meanwhile)
    with ledger.lease(FILL, ["day"], "run", heartbeat=False) as again:
        assert (again.keys, again.done) == ((), ("day",))
    assert len(ledger.find()) == 2


def test_what_a_run_has_done_is_done_although_another_has_done_it_since(ledger):
    succeeds(ledger, "f1", "run")
    succeeds(ledger, "f2", "another run")
    with ledger.lease(FILL, ["day"], "run", heartbeat=False) as again:
        assert again.done == ("day",)
    assert len(ledger.find()) == 2


def test_what_was_called_off_under_a_run_is_not_done_and_not_revived(ledger):
    first = ledger.lease(FILL, ["day"], "run", final=False, heartbeat=False)
    with pytest.raises(LeaseLost), first:
        ledger.cancel(first.work["day"].id)
    with ledger.lease(FILL, ["day"], "run", heartbeat=False) as again:
        assert (again.keys, again.done) == ((), ())
        assert again.settled["day"].status == "cancelled"


# People, status, retention


def test_a_person_revives_the_very_row_that_failed(ledger):
    number = called_off_behind_a_run_that_fails(ledger)
    failed, off = sorted(ledger.find(), key=lambda row: row.id)
    assert off.id == number
    again = ledger.retry(failed.id)
    assert (again.parent_id, again.fingerprint) == (failed.id, "f1")


def test_a_person_who_names_what_is_over_revives_what_came_after(ledger):
    fails(ledger, "f1")
    old = ledger.find()[0].id
    fails(ledger, "f2", "second")
    again = ledger.retry(old)
    assert (again.parent_id, again.fingerprint) == (ledger.find(status="failed")[0].id, "f2")


def test_a_failure_is_shown_although_a_later_wish_was_called_off(ledger):
    called_off_behind_a_run_that_fails(ledger)
    shown = {row.fingerprint: row.status for row in attention(ledger.engine, (FILL,))}
    assert shown["f1"] == "failed"


def test_what_was_called_off_is_shown_until_something_was_tried(ledger):
    fails(ledger, "f1")
    retried = ledger.retry(ledger.find()[0].id)
    assert attention(ledger.engine, (FILL,))[-1].id == retried.id, "the newer row comes last"
    ledger.cancel(retried.id)
    assert [(r.id, r.status) for r in attention(ledger.engine, (FILL,))] == [(retried.id, "cancelled")]
    succeeds(ledger, "f2")
    assert attention(ledger.engine, (FILL,)) == []


def test_who_made_way_takes_no_refusal_back(ledger, clock):
    fails(ledger, "f1")
    ledger.retry(ledger.find()[0].id)

    def run() -> None:
        with ledger.lease(FILL, ["day"], "run", heartbeat=False):
            ledger.enqueue([request("f2")])
            raise TransientResourceError("down")

    with pytest.raises(TransientResourceError):
        run()
    ledger.cancel(ledger.find(status="deferred")[0].id)
    shown = {row.fingerprint: row.status for row in attention(ledger.engine, (FILL,))}
    assert shown == {"f1": "failed", "f2": "cancelled"}
    clock.advance(days=100)
    assert ledger.purge(clock()) == 1
    assert refuses(ledger, "f1", "f2")


def test_retention_keeps_every_refusal_that_stands_and_no_other(ledger, clock):
    fails(ledger, "f0")
    fails(ledger, "f1", "second")
    called_off(ledger, "f2")
    clock.advance(days=100)
    assert ledger.purge(clock()) == 1
    assert refuses(ledger, "f1", "f2")
    succeeds(ledger, "f3")
    clock.advance(days=100)
    assert ledger.purge(clock()) == 3
    assert ledger.find() == []


# Asked for


def test_that_a_person_asked_lasts_over_whatever_becomes_of_the_row(ledger):
    names = ("by the plan", "asked", "retried", "asked while put off")
    for name in names:
        ledger.enqueue(
            [WorkRequest(FILL, name, "f", reason_code="asked_for" if name == "asked" else "missing")]
        )
    rows = {row.key: row.id for row in ledger.find(FILL)}
    ledger.retry(rows["retried"])
    with ledger.lease(FILL, names, "run", heartbeat=False) as held:
        for name in names:
            held.defer(name, "the lake is busy", reason_code="lake_busy")
    ledger.enqueue([WorkRequest(FILL, "asked while put off", "g", reason_code="asked_for")])
    ledger.enqueue([WorkRequest(FILL, name, "h", reason_code="changed") for name in names])
    assert ledger.asked_for(rows.values()) == {rows[name] for name in names[1:]}
    assert ledger.asked_for([]) == frozenset()

"""A clock that ran a day ahead and was put back: nothing waits for tomorrow, and nobody alive is robbed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.shared.error import TransientResourceError
from domain.shared.work import WorkRequest
from resources.ledger.client import Ledger, Work

FILL = "market.fill"
DAY = timedelta(days=1)
PUT_BACK = "clock_put_back"


@pytest.fixture
def put_back(clock, machine):
    """Both clocks run a day ahead; called, it puts them right."""
    clock.now += DAY
    machine.now += DAY

    def right() -> None:
        clock.now -= DAY
        machine.now -= DAY

    return right


def the(ledger: Ledger, key: str = "a") -> Work:
    return ledger.find(key_prefix=key)[0]


def story(ledger: Ledger, key: str = "a") -> list[str]:
    return [event.event for event in ledger.events(the(ledger, key).id)]


def held(ledger: Ledger, run: str = "run", **more: object):
    lease = ledger.lease(FILL, ["a"], run, heartbeat=False, **more)
    lease.__enter__()
    return lease


# Leases


def test_the_work_of_a_dead_run_is_free_a_minute_after_the_clock_is_right(ledger, machine, put_back):
    held(ledger)
    put_back()
    assert ledger.sweep(finished_runs=()) == [], "whether it is dead nobody knows yet"
    assert the(ledger).lease_until == machine() + timedelta(seconds=60)
    assert story(ledger) == ["created", "claimed", PUT_BACK]
    machine.advance(seconds=61)
    assert [one.why for one in ledger.sweep(finished_runs=())] == ["lease_expired"]


def test_a_run_known_to_be_gone_is_not_waited_for(ledger, put_back):
    held(ledger)
    put_back()
    assert [one.why for one in ledger.sweep(finished_runs={"run"})] == ["run_finished"]


def test_a_holder_that_beats_keeps_its_work(ledger, machine, put_back):
    lease = held(ledger)
    before = the(ledger)
    put_back()
    for _ in range(10):
        assert ledger.sweep(finished_runs=()) == []
        machine.advance(seconds=15)
        lease.check()
    assert (the(ledger).fence, the(ledger).run_id) == (before.fence, "run")
    lease.__exit__(None, None, None)
    assert the(ledger).status == "completed"


def test_a_run_between_two_passes_keeps_its_work(ledger, machine, put_back):
    lease = held(ledger, final=False, retry_in=timedelta(minutes=50))
    error = TransientResourceError("down")
    lease.__exit__(type(error), error, None)
    put_back()
    ledger.sweep(finished_runs=())
    machine.advance(minutes=50)
    assert ledger.sweep(finished_runs=()) == []
    machine.advance(minutes=12)
    assert len(ledger.sweep(finished_runs=())) == 1, "but not for a day"


def test_a_worker_keeps_the_longest_lease_there_is(ledger, machine, put_back):
    ledger.enqueue([WorkRequest(FILL, "a", "f")])
    ledger.claim(FILL, holder="worker:1", limit=1, lease=timedelta(minutes=30))
    put_back()
    ledger.sweep(finished_runs=())
    machine.advance(minutes=30)
    assert ledger.sweep(finished_runs=()) == []
    machine.advance(minutes=32)
    assert len(ledger.sweep(finished_runs=())) == 1


def test_a_holder_whose_own_clock_stays_wrong_is_told_of_once(ledger, machine):
    machine.now += DAY
    lease = held(ledger)
    for _ in range(5):
        machine.now -= DAY
        assert ledger.sweep(finished_runs=()) == []
        machine.now += DAY + timedelta(seconds=15)
        lease.check()
    assert story(ledger).count(PUT_BACK) == 1


def test_the_longest_lease_anybody_is_given_is_believed(ledger, machine):
    ledger.enqueue([WorkRequest(FILL, "a", "f")])
    (row,) = ledger.claim(FILL, holder="worker:1", limit=1, lease=timedelta(minutes=61))
    ledger.sweep(finished_runs=())
    assert the(ledger) == row


def test_a_longer_lease_is_given_to_nobody(ledger):
    with pytest.raises(ValueError, match="nobody would believe it"):
        ledger.claim(FILL, holder="worker:1", limit=1, lease=timedelta(minutes=62))
    with pytest.raises(ValueError, match="nobody would believe it"):
        ledger.lease(FILL, ["a"], "run", retry_in=timedelta(minutes=61))


# Waits


def test_a_backoff_is_as_long_as_it_was_meant_to_be(ledger, clock, put_back):
    error = TransientResourceError("down")
    held(ledger).__exit__(type(error), error, None)
    clock.advance(seconds=20)
    put_back()
    ledger.sweep(finished_runs=())
    row = the(ledger)
    assert (row.status, row.not_before) == ("deferred", clock() + timedelta(seconds=60))
    assert row.error == "down", "why it waits is still said"
    assert story(ledger)[-1] == PUT_BACK
    assert ledger.sweep(finished_runs=()) == []
    assert the(ledger) == row, "once is enough"


def test_a_dispatch_that_no_run_came_of_is_replaced_in_time(ledger, clock, put_back):
    ledger.enqueue([WorkRequest(FILL, "a", "f")])
    ledger.dispatch(FILL, limit=1)
    put_back()
    ledger.sweep(finished_runs=())
    clock.advance(seconds=120)
    assert len(ledger.dispatch(FILL, limit=1)) == 1


def test_a_wish_is_done_at_once_if_it_was_to_be_done_at_once(ledger, put_back):
    ledger.enqueue([WorkRequest(FILL, "a", "f")])
    put_back()
    assert ledger.dispatch(FILL, limit=1) == []
    ledger.sweep(finished_runs=())
    assert len(ledger.dispatch(FILL, limit=1)) == 1


def test_a_date_far_ahead_that_somebody_wished_for_stays(ledger, clock):
    later = clock() + timedelta(days=30)
    (row,) = ledger.enqueue([WorkRequest(FILL, "a", "f", not_before=later)]).created
    ledger.sweep(finished_runs=())
    assert ledger.get(row.id) == row


def test_what_ended_tomorrow_is_done_again_today(ledger, clock, put_back):
    ledger.enqueue([WorkRequest(FILL, "a", "f")])
    with ledger.lease(FILL, ["a"], "run", heartbeat=False):
        pass
    put_back()
    assert ledger.enqueue([WorkRequest(FILL, "a", "f")]).created[0].not_before == clock()

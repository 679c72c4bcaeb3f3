"""The ledger's rules as pure functions: no database anywhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from domain.shared.backoff import Backoff
from domain.shared.work import Kind, WorkRequest
from resources.ledger.outcome import Cause, Outcome
from resources.ledger.transitions import (
    claimed,
    dispatched,
    first_generation,
    judge_request,
    orphaned,
    reckoned,
    settled,
    superseded,
)

NOW = datetime(2026, 11, 18, 10, 30, tzinfo=UTC)
KIND = Kind("k", transient=Backoff(base=timedelta(seconds=60), max_attempts=3))
ENDLESS = Kind("k", transient=Backoff(base=timedelta(seconds=60)))
WISH = WorkRequest("k", "key", "f1")


def running(run_id: str = "run"):
    return claimed(first_generation(WISH, KIND, NOW), run_id, now=NOW, lease_until=NOW)


def failure(kind: str = "transient", **more) -> Outcome:
    return Outcome("defer", cause=Cause(kind, "why", "words", **more))


def test_a_new_row_carries_its_kinds_maximum():
    verdict, row = judge_request(WISH, KIND, waiting=None, running=None, standing=[], now=NOW)
    assert (verdict, row.max_attempts, row.fence) == ("create", 3, 0)


def test_each_change_of_hands_moves_the_fence():
    row = running()
    for verb in ("complete", "skip", "defer", "fail", "release"):
        after = settled(row, Outcome(verb, cause=Cause("permanent", "r", "w")), KIND, NOW)
        assert after.fence == row.fence + 1
    assert orphaned(row, KIND, why="run_finished", now=NOW).fence == row.fence + 1
    assert claimed(row, "run", now=NOW, lease_until=NOW).fence == row.fence + 1


def test_one_run_is_one_attempt_however_often_it_claims():
    row = settled(running(), failure(), ENDLESS, NOW)
    assert claimed(row, "run", now=NOW, lease_until=NOW).attempts == 1
    assert claimed(row, "other", now=NOW, lease_until=NOW).attempts == 2


@pytest.mark.parametrize(("attempts", "status"), [(1, "deferred"), (2, "deferred"), (3, "failed")])
def test_attempts_end_at_the_maximum(attempts, status):
    row = replace(running(), attempts=attempts)
    assert settled(row, failure(), KIND, NOW).status == status


def test_a_success_wipes_the_errors_of_attempts_before():
    row = claimed(settled(running(), failure(), KIND, NOW), "next", now=NOW, lease_until=NOW)
    assert row.error == "words"
    done = settled(row, Outcome("complete"), KIND, NOW)
    assert (done.error, done.error_kind, done.reason_code) == (None, None, "")


def test_a_dispatch_makes_a_deferred_row_queued():
    row = dispatched(settled(running(), failure(), KIND, NOW), "d", NOW)
    assert (row.status, row.dispatches, row.dispatch_id) == ("queued", 1, "d")
    assert row.error == "words", "it still says why it had to wait"


def test_an_heir_keeps_the_later_of_two_dates():
    old = running()
    back = settled(old, failure(), ENDLESS, NOW)
    newer = first_generation(
        replace(WISH, fingerprint="f2", not_before=NOW + timedelta(days=1)), ENDLESS, NOW
    )
    ended, heir = superseded(old, back, newer, NOW)
    assert ended.status == "cancelled"
    assert heir.not_before == NOW + timedelta(days=1)


def test_an_orphans_second_death_makes_it_wait():
    row = orphaned(running(), ENDLESS, why="lease_expired", now=NOW)
    assert row.not_before == NOW
    row = orphaned(claimed(row, "next", now=NOW, lease_until=NOW), ENDLESS, why="lease_expired", now=NOW)
    assert row.not_before == NOW + ENDLESS.unclassified.base


def test_a_wait_that_a_clock_ahead_began_is_as_long_as_it_was_meant():
    tomorrow = NOW + timedelta(days=1)
    row = settled(running(), failure(), ENDLESS, tomorrow)
    assert row.not_before == tomorrow + timedelta(seconds=60)
    assert reckoned(row, NOW).not_before == NOW + timedelta(seconds=60)
    assert reckoned(reckoned(row, NOW), NOW) == reckoned(row, NOW)


@pytest.mark.parametrize("apart", [timedelta(0), timedelta(minutes=4), timedelta(hours=-3)])
def test_clocks_that_are_nearly_right_move_no_wait(apart):
    row = settled(running(), failure(), ENDLESS, NOW + apart)
    assert reckoned(row, NOW) is row


def test_a_newer_wish_does_not_hide_that_a_wait_began_tomorrow():
    waiting = settled(running(), failure(), ENDLESS, NOW + timedelta(days=1))
    request = replace(WISH, fingerprint="f2")
    verdict, row = judge_request(request, ENDLESS, waiting=waiting, running=None, standing=[], now=NOW)
    assert (verdict, row.not_before) == ("update", NOW + timedelta(seconds=60))


def test_an_heir_inherits_no_wait_that_began_tomorrow():
    tomorrow = NOW + timedelta(days=1)
    newer = replace(first_generation(WISH, ENDLESS, tomorrow), id=2)
    back = settled(running(), failure(), ENDLESS, NOW)
    _, heir = superseded(running(), back, newer, NOW)
    assert heir.not_before == NOW + timedelta(seconds=60)


def test_work_that_ended_tomorrow_is_done_again_today():
    last = settled(running(), Outcome("complete"), ENDLESS, NOW + timedelta(days=1))
    verdict, row = judge_request(WISH, ENDLESS, waiting=None, running=None, standing=[last], now=NOW)
    assert (verdict, row.repeats, row.not_before) == ("create", 1, NOW)

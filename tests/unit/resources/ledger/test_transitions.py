"""The ledger's rules as pure functions: no database anywhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from domain.shared.backoff import Backoff
from domain.shared.work import Kind, WorkRequest
from resources.ledger.history import KeyState
from resources.ledger.outcome import Cause, Outcome
from resources.ledger.transitions import (
    claimed,
    decide_request,
    dispatched,
    first_generation,
    inherited,
    orphaned,
    settled,
    unclaimed,
)

NOW = datetime(2026, 11, 18, 10, 30, tzinfo=UTC)
KIND = Kind("k", transient=Backoff(base=timedelta(seconds=60), max_attempts=3))
ENDLESS = Kind("k", transient=Backoff(base=timedelta(seconds=60)))
REQUEST = WorkRequest("k", "key", "f1")


def claim(row, run_id: str = "run", *, attempt: bool = True):
    return claimed(row, run_id, now=NOW, lease_until=NOW, attempt=attempt)


def running():
    return claim(first_generation(REQUEST, KIND, NOW))


def failure(kind: str = "transient", **more) -> Outcome:
    return Outcome("defer", cause=Cause(kind, "why", "text", **more))


def test_decide_request__new_key__carries_its_kinds_maximum():
    decision, row = decide_request(REQUEST, KIND, KeyState(), NOW)
    assert (decision, row.max_attempts, row.fence) == ("created", 3, 0)


def test_fence__each_change_of_holder__moves_it():
    row = running()
    for verb in ("complete", "skip", "defer", "fail", "release", "repeat"):
        after = settled(row, Outcome(verb, cause=Cause("permanent", "r", "w")), KIND, NOW)
        assert after.fence == row.fence + 1
    assert orphaned(row, KIND, why="run_finished", now=NOW).fence == row.fence + 1
    assert claim(row).fence == row.fence + 1


@pytest.mark.parametrize(("attempts", "status"), [(1, "deferred"), (2, "deferred"), (3, "failed")])
def test_settled__attempts_at_the_maximum__fails(attempts, status):
    row = replace(running(), attempts=attempts)
    assert settled(row, failure(), KIND, NOW).status == status


def test_settled__success_after_errors__clears_them():
    row = claim(settled(running(), failure(), KIND, NOW), "next")
    assert row.error == "text"
    done = settled(row, Outcome("complete"), KIND, NOW)
    assert (done.error, done.error_kind, done.reason_code) == (None, None, "")


def test_settled__repeat__keeps_run_dispatch_and_attempt():
    row = replace(running(), dispatch_id="d")
    again = settled(row, replace(failure(), verb="repeat", not_before=NOW), KIND, NOW)
    assert (again.status, again.run_id, again.dispatch_id) == ("queued", "run", "d")
    assert (again.attempts, again.error, again.lease_until) == (1, "text", None)


def test_dispatched__deferred_row__is_queued_and_keeps_its_error():
    row = dispatched(settled(running(), failure(), KIND, NOW), "d", NOW)
    assert (row.status, row.dispatches, row.dispatch_id, row.error) == ("queued", 1, "d", "text")


def test_unclaimed__second_run_in_vain__waits_longer_and_frees_the_row():
    row = first_generation(REQUEST, KIND, NOW)
    for wait in (60, 120):
        row = unclaimed(dispatched(row, "d", NOW), NOW)
        assert (row.dispatch_id, row.not_before) == (None, NOW + timedelta(seconds=wait))


def test_inherited__newer_request_has_a_later_date__keeps_it():
    old = running()
    back = settled(old, failure(), ENDLESS, NOW)
    tomorrow = NOW + timedelta(days=1)
    newer = first_generation(replace(REQUEST, fingerprint="f2", not_before=tomorrow), ENDLESS, NOW)
    ended, heir = inherited(old, back, newer, NOW)
    assert (ended.status, heir.not_before, heir.attempts) == ("superseded", tomorrow, 1)


def test_orphaned__second_death__waits():
    row = orphaned(running(), ENDLESS, why="lease_expired", now=NOW)
    assert row.not_before == NOW
    row = orphaned(claim(row, "next"), ENDLESS, why="lease_expired", now=NOW)
    assert row.not_before == NOW + ENDLESS.unclassified.base


def test_orphaned__poller_died_at_the_maximum__is_queued_again():
    row = replace(running(), attempts=3)
    assert orphaned(row, KIND, why="lease_expired", now=NOW).status == "failed"
    assert orphaned(row, KIND, why="lease_expired", now=NOW, attempt=False).status == "queued"

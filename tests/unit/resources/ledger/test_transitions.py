"""The ledger's rules as pure functions. The model (`test_ledger_model.py`) tries them in any order."""

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
)

NOW = datetime(2026, 11, 18, 10, 30, tzinfo=UTC)
KIND = Kind("k", transient=Backoff(base=timedelta(seconds=60), max_attempts=3))
REQUEST = WorkRequest("k", "key", "f1")
DOWN = Outcome("defer", "why", Cause("transient", "why", "text"))
RUNNING = claimed(first_generation(REQUEST, KIND, NOW), "run", now=NOW, lease_until=NOW, attempt=True)


def test_decide_request__new_key__carries_its_kinds_maximum():
    decision, row = decide_request(REQUEST, KIND, KeyState(), NOW)
    assert (decision, row.max_attempts, row.fence) == ("created", 3, 0)


@pytest.mark.parametrize("verb", ["complete", "skip", "defer", "fail", "release", "repeat"])
def test_settled__any_end__moves_the_fence_and_success_clears_the_error(verb):
    after = settled(replace(RUNNING, error="of the attempt before"), replace(DOWN, verb=verb), KIND, NOW)
    assert after.fence == RUNNING.fence + 1
    assert (after.error is None) == (verb in ("complete", "skip"))


@pytest.mark.parametrize(("attempts", "status"), [(2, "deferred"), (3, "failed")])
def test_settled__attempts_at_the_maximum__fails(attempts, status):
    assert settled(replace(RUNNING, attempts=attempts), DOWN, KIND, NOW).status == status


def test_settled__repeat__keeps_run_dispatch_and_attempt():
    again = settled(replace(RUNNING, dispatch_id="d"), replace(DOWN, verb="repeat"), KIND, NOW)
    assert (again.status, again.run_id, again.dispatch_id, again.attempts) == ("queued", "run", "d", 1)


def test_dispatched__deferred_row__is_queued_and_keeps_its_error():
    row = dispatched(settled(RUNNING, DOWN, KIND, NOW), "d", NOW)
    assert (row.status, row.dispatches, row.dispatch_id, row.error) == ("queued", 1, "d", "text")


def test_inherited__newer_request_has_a_later_date__keeps_it():
    tomorrow = NOW + timedelta(days=1)
    newer = first_generation(replace(REQUEST, fingerprint="f2", not_before=tomorrow), KIND, NOW)
    ended, heir = inherited(RUNNING, settled(RUNNING, DOWN, KIND, NOW), newer, NOW)
    assert (ended.status, heir.not_before, heir.attempts) == ("superseded", tomorrow, 1)


@pytest.mark.parametrize(
    ("deaths", "status", "code"), [(8, "queued", "lease_expired"), (9, "failed", "abandoned")]
)
def test_orphaned__holders_died_before__is_given_up_with_the_tenth(deaths, status, code):
    row = orphaned(replace(RUNNING, attempts=3, deaths=deaths), why="lease_expired", now=NOW)
    assert (row.status, row.reason_code, row.attempts) == (status, code, 2)

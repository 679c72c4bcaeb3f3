"""Throughput, durations and failures per kind, from the rows of work that ended."""

from __future__ import annotations

from datetime import timedelta

import pytest

from domain.shared.error import InvalidInput
from domain.shared.work import WorkRequest
from resources.ledger.kind_statistics import kind_statistics
from resources.ledger.standing import NOT_NEEDED

FILL, HOOK = "market.fill", "records.hook"
HOUR = timedelta(hours=1)


def ended(ledger, clock, key: str, *, seconds: float = 1.0, verb: str = "complete", kind: str = FILL) -> None:
    """A piece of work that took so long, of which the clock stands at its end."""
    ledger.enqueue([WorkRequest(kind, key, "f")])
    with ledger.lease(kind, [key], f"run of {key}", heartbeat=False) as lease:
        clock.advance(seconds=seconds)
        if verb == "fail":
            lease.fail(key, "no")
        elif verb == "skip":
            lease.skip(key, "closed")


def told(ledger, clock, window: timedelta = HOUR):
    return {one.kind: one for one in kind_statistics(ledger.engine, clock() - window, clock())}


def test_where_nothing_ended_there_is_nothing_to_tell(ledger, clock):
    ledger.enqueue([WorkRequest(FILL, "waits", "f")])
    assert told(ledger, clock) == {}


def test_each_kind_is_told_for_itself_in_the_order_of_names(ledger, clock):
    ended(ledger, clock, "b", kind=HOOK)
    ended(ledger, clock, "a")
    clock.advance(seconds=1)
    found = kind_statistics(ledger.engine, clock() - HOUR, clock())
    assert [(one.kind, one.completed) for one in found] == [(FILL, 1), (HOOK, 1)]


@pytest.mark.parametrize(
    ("lasted", "median", "p95"),
    [
        ([7], 7, 7),
        ([1, 9], 1, 9),
        ([9, 1, 5], 5, 9),
        ([4, 3, 2, 1], 2, 4),
        (list(range(20, 0, -1)), 10, 19),
        (list(range(1, 101)), 50, 95),
    ],
)
def test_durations_are_told_by_the_middle_one_and_by_what_95_of_100_do_not_exceed(
    ledger, clock, lasted, median, p95
):
    for number, seconds in enumerate(lasted):
        ended(ledger, clock, f"d{number}", seconds=seconds)
    clock.advance(seconds=1)
    found = told(ledger, clock, timedelta(days=1))[FILL]
    assert found.median_seconds == pytest.approx(median, abs=0.001)
    assert found.p95_seconds == pytest.approx(p95, abs=0.001)


def test_durations_know_parts_of_a_second(ledger, clock):
    ended(ledger, clock, "d", seconds=0.25)
    clock.advance(seconds=1)
    assert told(ledger, clock)[FILL].median_seconds == pytest.approx(0.25, abs=0.001)


def test_a_duration_goes_from_the_first_claim_over_all_waits_to_the_end(ledger, clock):
    ledger.enqueue([WorkRequest(FILL, "d", "f")])
    clock.advance(minutes=7)
    with ledger.lease(FILL, ["d"], "first run", heartbeat=False) as lease:
        lease.defer("d", "source down")
    clock.advance(minutes=5)
    with ledger.lease(FILL, ["d"], "second run", heartbeat=False):
        clock.advance(seconds=10)
    clock.advance(seconds=1)
    assert told(ledger, clock)[FILL].median_seconds == pytest.approx(310, abs=0.01)


def test_how_long_failures_took_says_nothing_of_the_work(ledger, clock):
    ended(ledger, clock, "bad", seconds=500, verb="fail")
    ended(ledger, clock, "good", seconds=2)
    clock.advance(seconds=1)
    found = told(ledger, clock)[FILL]
    assert (found.median_seconds, found.p95_seconds) == (
        pytest.approx(2, abs=0.001),
        pytest.approx(2, abs=0.001),
    )


def test_failures_are_counted_among_what_was_tried_to_the_end(ledger, clock):
    for number, verb in enumerate(["complete", "complete", "complete", "fail", "skip", "skip"]):
        ended(ledger, clock, f"d{number}", verb=verb)
    (waiting,) = ledger.enqueue([WorkRequest(FILL, "called off", "f")]).created
    ledger.cancel(waiting.id)
    clock.advance(seconds=1)
    found = told(ledger, clock)[FILL]
    assert (found.completed, found.failed, found.skipped, found.cancelled) == (3, 1, 2, 1)
    assert found.failure_rate == 0.25


def test_where_nothing_was_tried_to_the_end_there_is_no_rate_and_no_duration(ledger, clock):
    ended(ledger, clock, "d", verb="skip")
    clock.advance(seconds=1)
    found = told(ledger, clock)[FILL]
    assert (found.skipped, found.failure_rate, found.median_seconds, found.p95_seconds) == (
        1,
        None,
        None,
        None,
    )
    assert found.completed_per_hour == 0


@pytest.mark.parametrize("reason", NOT_NEEDED)
def test_work_that_nobody_needed_is_not_counted(ledger, clock, reason):
    (row,) = ledger.enqueue([WorkRequest(FILL, "d", "f")]).created
    ledger.cancel(row.id, reason_code=reason)
    clock.advance(seconds=1)
    assert told(ledger, clock) == {}


def test_throughput_is_per_hour_of_the_window(ledger, clock):
    for number in range(6):
        ended(ledger, clock, f"d{number}", seconds=60)
    clock.advance(seconds=1)
    assert told(ledger, clock, timedelta(hours=2))[FILL].completed_per_hour == 3
    assert told(ledger, clock, timedelta(minutes=30))[FILL].completed_per_hour == 12


def test_a_window_has_its_beginning_and_not_its_end(ledger, clock):
    ended(ledger, clock, "first")
    begin = clock()
    clock.advance(minutes=1)
    ended(ledger, clock, "second")
    end = clock()

    def completed(since, until):
        return sum(one.completed for one in kind_statistics(ledger.engine, since, until))

    assert completed(begin, end) == 1
    assert completed(begin, end + timedelta(microseconds=1)) == 2
    assert completed(begin + timedelta(microseconds=1), end) == 0


def test_a_window_of_no_length_is_refused(ledger, clock):
    with pytest.raises(InvalidInput, match="has no length"):
        kind_statistics(ledger.engine, clock(), clock())

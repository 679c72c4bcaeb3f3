"""Finding rows, deleting old ones, freshness, statistics, and the stamp that keeps sources apart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pyarrow as pa
import pytest

from domain.shared.error import InvalidInput, TransientResourceError
from domain.shared.work import WorkRequest
from resources.database.arrow import read_arrow
from resources.ledger.kind_statistics import kind_statistics
from resources.ledger.schema import VIEWS

FILL, HOOK = "market.fill", "records.hook"
HOUR = timedelta(hours=1)


def end(
    ledger, key: str, *, verb: str = "complete", seconds: float = 0, clock=None, kind=FILL, **more
) -> None:
    """A work item that took so long and ended so."""
    ledger.enqueue([WorkRequest(kind, key, "f", **more)])
    with ledger.lease(kind, [key], f"run of {key}", heartbeat=False) as lease:
        if clock:
            clock.advance(seconds=seconds)
        if verb == "fail":
            lease.fail(key, "no")
        elif verb == "skip":
            lease.skip(key, "closed")


def test_find__filters__show_the_newest_first(ledger):
    ledger.enqueue(
        [WorkRequest(FILL, key, "f") for key in ("a_1", "a_2", "ab1")] + [WorkRequest(HOOK, "a_1", "f")]
    )
    assert [row.key for row in ledger.find(kind=FILL)] == ["ab1", "a_2", "a_1"]
    assert [row.key for row in ledger.find(kind=FILL, key_prefix="a_")] == ["a_2", "a_1"], "_ is no wildcard"
    assert [row.key for row in ledger.find(limit=1)] == ["a_1"]
    assert ledger.find(status="failed") == []
    assert len(ledger.find(status=["queued", "failed"])) == 4


def test_running_and_counts__some_of_each__are_reported_by_status(ledger):
    end(ledger, "a")
    ledger.enqueue([WorkRequest(FILL, "b", "f")])
    with ledger.lease(FILL, ["c"], "run", heartbeat=False):
        assert [row.key for row in ledger.running()] == ["c"]
        assert ledger.counts() == {FILL: {"completed": 1, "queued": 1, "running": 1}}
    assert ledger.running() == []
    assert (ledger.get(2**60), ledger.get(2**70)) == (None, None)


def test_purge__old_finished_rows__go_with_their_events(ledger, clock):
    end(ledger, "old")
    (old,) = ledger.find()
    ledger.enqueue([WorkRequest(FILL, "waiting", "f")])
    clock.advance(days=100)
    end(ledger, "new")
    assert ledger.purge(clock.now) == 1
    assert {row.key for row in ledger.find()} == {"waiting", "new"}
    assert ledger.events(old.id) == []
    assert ledger.enqueue([WorkRequest(FILL, "b", "f")]).created[0].id > old.id, "an id is never given twice"


def test_purge__events_done_once__are_deleted_like_all_others(ledger, clock):
    end(ledger, "event", once=True)
    end(ledger, "failed event", verb="fail", once=True)
    clock.advance(days=100)
    assert ledger.purge(clock.now) == 1
    assert [row.key for row in ledger.find()] == ["failed event"], "it still refuses its request"


def test_read_arrow__rows_of_every_type__gives_a_typed_table(ledger, clock):
    empty = read_arrow(ledger.engine, VIEWS["ops.work"])
    end(ledger, "a")
    ledger.enqueue([WorkRequest(FILL, "b", "f", params={"名": 1})])
    full = read_arrow(ledger.engine, VIEWS["ops.work"])
    assert (empty.num_rows, empty.schema) == (0, full.schema)
    assert full.column("status").to_pylist() == ["completed", "queued"]
    assert full.column("params").to_pylist() == ["{}", '{"名": 1}']
    assert full.schema.field("created_at").type == pa.timestamp("us", tz="UTC")
    assert full.column("created_at")[0].as_py() == clock()


# Freshness


def only(ledger):
    (row,) = ledger.freshness.all()
    return row


def test_freshness__success_and_later_failure__keeps_both(ledger, clock):
    ledger.freshness.succeeded("daily", rows_latest=5300, rows_today=5300)
    succeeded_at = clock()
    clock.advance(hours=1)
    ledger.freshness.failed("daily", TransientResourceError("daily failed\nafter 3: \0"))
    row = only(ledger)
    assert (row.last_success, row.last_failure, row.updated_at) == (succeeded_at, clock(), clock())
    assert (row.rows_latest, row.rows_today, row.last_error) == (5300, 5300, "daily failed\nafter 3: \ufffd")


def test_freshness__of_one_domain__is_found_by_its_name(ledger):
    for name in ("carbon.manual", "carbon_x.manual", "tushare.daily"):
        ledger.freshness.succeeded(name, rows_latest=1, rows_today=None)
    assert [one.source for one in ledger.freshness.all("carbon")] == ["carbon.manual"]
    assert len(ledger.freshness.all()) == 3


# The stamp of the source


def test_stamp_source__another_source__is_refused(ledger):
    assert ledger.stamped_source() is None
    ledger.stamp_source("sandbox")
    ledger.stamp_source("sandbox")
    with pytest.raises(InvalidInput) as refusal:
        ledger.stamp_source("tushare")
    assert refusal.value.reason_code == "source_mismatch"
    assert "PERENNIAL_HOME" in refusal.value.remedy
    assert ledger.stamped_source() == "sandbox"


def test_stamp_source__many_at_once__one_wins_and_all_agree(ledger, open_ledger):
    ledgers = [open_ledger() for _ in range(8)]

    def stamp(number: int) -> str | None:
        try:
            ledgers[number].stamp_source(f"source {number}")
        except InvalidInput:
            return None
        return f"source {number}"

    with ThreadPoolExecutor(8) as pool:
        winners = [name for name in pool.map(stamp, range(8)) if name]
    assert winners == [ledger.stamped_source()]


# Statistics


def statistics(ledger, clock, window: timedelta = HOUR):
    clock.advance(seconds=1)  # the window's end is not part of it
    return {one.kind: one for one in kind_statistics(ledger.engine, clock() - window, clock())}


@pytest.mark.parametrize(
    ("lasted", "median", "p95"),
    [
        ([7], 7, 7),
        ([0.25], 0.25, 0.25),
        ([9, 1, 5], 5, 9),
        ([4, 3, 2, 1], 2, 4),
        (list(range(1, 21)), 10, 19),
    ],
)
def test_statistics__durations__are_those_that_happened(ledger, clock, lasted, median, p95):
    for number, seconds in enumerate(lasted):
        end(ledger, f"d{number}", seconds=seconds, clock=clock)
    end(ledger, "failed", verb="fail", seconds=500, clock=clock)
    found = statistics(ledger, clock, timedelta(days=1))[FILL]
    assert found.median_seconds == pytest.approx(median, abs=0.001)
    assert found.p95_seconds == pytest.approx(p95, abs=0.001)


def test_statistics__deferred_in_between__lasts_from_the_first_claim_to_the_end(ledger, clock):
    ledger.enqueue([WorkRequest(FILL, "d", "f")])
    clock.advance(minutes=7)
    with ledger.lease(FILL, ["d"], "first run", heartbeat=False) as lease:
        lease.defer("d", "source down")
    clock.advance(minutes=5)
    end(ledger, "d", seconds=10, clock=clock)
    assert statistics(ledger, clock)[FILL].median_seconds == pytest.approx(310, abs=0.01)


def test_statistics__every_end__is_counted_but_the_superseded(ledger, clock):
    for number, verb in enumerate(["complete", "complete", "complete", "fail", "skip", "skip"]):
        end(ledger, f"d{number}", verb=verb)
    end(ledger, "h", verb="skip", kind=HOOK)
    cancelled, superseded = ledger.enqueue([WorkRequest(FILL, key, "f") for key in "xy"]).created
    ledger.cancel(cancelled.id)
    ledger.supersede([superseded])
    found = statistics(ledger, clock)
    fill, hook = found[FILL], found[HOOK]
    assert (fill.completed, fill.failed, fill.skipped, fill.cancelled) == (3, 1, 2, 1)
    assert (fill.failure_rate, fill.completed_per_hour) == (0.25, 3)
    assert (hook.skipped, hook.failure_rate, hook.median_seconds, hook.p95_seconds) == (1, None, None, None)


def test_statistics__window__has_its_beginning_and_not_its_end(ledger, clock):
    end(ledger, "first")
    begin = clock()
    clock.advance(minutes=1)
    end(ledger, "second")
    until = clock()

    def completed(since, until):
        return sum(one.completed for one in kind_statistics(ledger.engine, since, until))

    assert completed(begin, until) == 1
    assert completed(begin, until + timedelta(microseconds=1)) == 2
    assert completed(begin + timedelta(microseconds=1), until) == 0
    with pytest.raises(InvalidInput, match="has no length"):
        kind_statistics(ledger.engine, clock(), clock())

"""Finding rows, deleting old ones, freshness, statistics, and the stamp that keeps sources apart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pyarrow as pa
import pytest
from sqlalchemy import event

from domain.shared.error import InvalidInput, TransientResourceError
from domain.shared.work import WorkRequest
from resources.database.arrow import read_arrow
from resources.ledger.kind_statistics import kind_statistics
from resources.ledger.schema import work
from tests.integration.resources.ledger.steps import FILL, FINITE, enqueue, lease


def end(ledger, key: str, *, verb: str = "complete", seconds: float = 0, clock=None, kind=FILL, **more):
    """A work item that took so long and ended so."""
    enqueue(ledger, key, kind=kind, **more)
    with lease(ledger, key, run=f"run of {key}", kind=kind) as held:
        if clock:
            clock.advance(seconds=seconds)
        if verb == "fail":
            held.fail(key, "no")
        elif verb == "skip":
            held.skip(key, "closed")


def test_find__reason_and_time__leave_out_others_and_older_ones(ledger, clock):
    end(ledger, "old", verb="skip")
    clock.advance(seconds=1)
    began = clock()
    end(ledger, "new", verb="skip")
    end(ledger, "done")
    found = ledger.find(FILL, status="skipped", reason_code=ledger.find(key_prefix="new")[0].reason_code)
    assert [row.key for row in found] == ["new", "old"]
    assert [row.key for row in ledger.find(FILL, status="skipped", since=began)] == ["new"]
    assert ledger.find(FILL, reason_code="thinner") == []


def test_find__filters__show_the_newest_first(ledger):
    enqueue(ledger, "a_1", "a_2", "ab1")
    enqueue(ledger, "a_1", kind=FINITE)
    assert [row.key for row in ledger.find(kind=FILL)] == ["ab1", "a_2", "a_1"]
    assert [row.key for row in ledger.find(kind=FILL, key_prefix="a_")] == ["a_2", "a_1"], "_ is no wildcard"
    assert [row.key for row in ledger.find(limit=1)] == ["a_1"]
    second = ledger.find(status="queued", limit=2)[-1]
    assert [row.key for row in ledger.find(before=second.id)] == ["a_2", "a_1"]
    assert [row.id for row in ledger.find(status="queued", before=second.id)] == sorted(
        (row.id for row in ledger.find(before=second.id)), reverse=True
    )
    assert (ledger.find(status="failed"), len(ledger.find(status=["queued", "failed"]))) == ([], 4)
    assert (ledger.get(2**60), ledger.get(2**70)) == (None, None)


def test_running_and_counts__some_of_each__are_reported_by_status(ledger):
    end(ledger, "a")
    enqueue(ledger, "b")
    with lease(ledger, "c"):
        assert [row.key for row in ledger.running()] == ["c"]
        assert ledger.counts() == {FILL: {"completed": 1, "queued": 1, "running": 1}}


def test_purge__old_finished_rows__go_with_their_events(ledger, clock):
    end(ledger, "old")
    end(ledger, "an event, done once", once=True)
    end(ledger, "failed event", verb="fail", once=True)
    old = ledger.find(key_prefix="old")[0]
    enqueue(ledger, "waiting")
    clock.advance(days=100)
    end(ledger, "new")
    assert ledger.purge(clock.now) == 2
    assert {row.key for row in ledger.find()} == {"waiting", "new", "failed event"}, "it still refuses"
    assert ledger.events(old.id) == []
    assert enqueue(ledger, "b")[0].id > old.id, "an id is never given twice"


def test_read_arrow__rows_of_every_type__gives_a_typed_table(ledger, clock):
    empty = read_arrow(ledger.engine, work)
    end(ledger, "a")
    enqueue(ledger, "b", params={"名": 1})
    full = read_arrow(ledger.engine, work)
    assert (empty.num_rows, empty.schema) == (0, full.schema)
    assert full.column("status").to_pylist() == ["completed", "queued"]
    assert full.column("params").to_pylist() == ["{}", '{"名": 1}']
    assert full.schema.field("created_at").type == pa.timestamp("us", tz="UTC")
    assert full.column("created_at")[0].as_py() == clock()


def test_freshness__success_and_later_failure__keeps_both(ledger, clock):
    ledger.freshness.succeeded("daily", rows_latest=5300, rows_today=5300)
    succeeded_at = clock()
    clock.advance(hours=1)
    ledger.freshness.failed("daily", TransientResourceError("daily failed\nafter 3: \0"))
    (row,) = ledger.freshness.all()
    assert (row.last_success, row.last_failure, row.updated_at) == (succeeded_at, clock(), clock())
    assert (row.rows_latest, row.rows_today, row.last_error) == (5300, 5300, "daily failed\nafter 3: \ufffd")


def test_freshness__of_one_domain__is_found_by_its_name(ledger):
    for name in ("carbon.manual", "carbon_x.manual", "tushare.daily"):
        ledger.freshness.succeeded(name, rows_latest=1, rows_today=None)
    assert [one.source for one in ledger.freshness.all("carbon")] == ["carbon.manual"]
    assert len(ledger.freshness.all()) == 3


def test_stamp_source__many_at_once__one_wins_and_every_other_is_refused(ledger, open_ledger):
    ledgers = [open_ledger() for _ in range(4)]

    def stamp(number: int) -> str:
        try:
            ledgers[number].stamp_source(f"source {number}")
        except InvalidInput as refusal:
            return refusal.reason_code
        return f"source {number}"

    assert ledger.stamped_source() is None
    with ThreadPoolExecutor(4) as pool:
        winner, *others = sorted(pool.map(stamp, range(4)), key=lambda name: name == "source_mismatch")
    assert (winner, set(others)) == (ledger.stamped_source(), {"source_mismatch"})
    ledger.stamp_source(winner)


# Statistics


def statistics(ledger, clock, window: timedelta = timedelta(hours=1)):
    clock.advance(seconds=1)  # the window's end is not part of it
    return {one.kind: one for one in kind_statistics(ledger.engine, clock() - window, clock())}


@pytest.mark.parametrize(
    ("lasted", "median", "p95"),
    [([0.25], 0.25, 0.25), ([9, 1, 5], 5, 9), ([4, 3, 2, 1], 2, 4), (list(range(1, 21)), 10, 19)],
)
def test_statistics__durations__are_those_that_happened(ledger, clock, lasted, median, p95):
    for number, seconds in enumerate(lasted):
        end(ledger, f"d{number}", seconds=seconds, clock=clock)
    end(ledger, "failed", verb="fail", seconds=500, clock=clock)
    found = statistics(ledger, clock, timedelta(days=1))[FILL]
    assert found.median_seconds == pytest.approx(median, abs=0.001)
    assert found.p95_seconds == pytest.approx(p95, abs=0.001)


def test_statistics__deferred_in_between__lasts_from_the_first_claim_to_the_end(ledger, clock):
    enqueue(ledger, "d")
    clock.advance(minutes=7)
    with lease(ledger, "d", run="first run") as held:
        held.defer("d", "source down")
    clock.advance(minutes=5)
    end(ledger, "d", seconds=10, clock=clock)
    assert statistics(ledger, clock)[FILL].median_seconds == pytest.approx(310, abs=0.01)


def test_statistics__every_end__is_counted_but_the_superseded(ledger, clock):
    for number, verb in enumerate(["complete", "complete", "complete", "fail", "skip", "skip"]):
        end(ledger, f"d{number}", verb=verb)
    end(ledger, "h", verb="skip", kind=FINITE)
    cancelled, superseded = ledger.enqueue([WorkRequest(FILL, key, "f") for key in "xy"]).created
    ledger.cancel(cancelled.id)
    ledger.supersede([superseded])
    found = statistics(ledger, clock)
    fill, hook = found[FILL], found[FINITE]
    assert (fill.completed, fill.failed, fill.skipped, fill.cancelled) == (3, 1, 2, 1)
    assert (fill.failure_rate, fill.completed_per_hour) == (0.25, 3)
    assert (hook.skipped, hook.failure_rate, hook.median_seconds, hook.p95_seconds) == (1, None, None, None)


def test_statistics__window__has_its_beginning_and_not_its_end(ledger, clock):
    end(ledger, "first")
    begin = clock()
    clock.advance(minutes=1)
    end(ledger, "second")
    [found] = kind_statistics(ledger.engine, begin, clock())
    assert found.completed == 1
    with pytest.raises(InvalidInput, match="has no length"):
        kind_statistics(ledger.engine, clock(), clock())


@pytest.mark.parametrize("status", ["failed", "deferred"])
@pytest.mark.parametrize("before", [None, 9])
def test_find__status_that_few_have__is_read_from_its_index(ledger, status, before):
    if ledger.engine.dialect.name != "sqlite":
        pytest.skip("Postgres decides by how many rows there are")
    plans = []

    def explain(connection, cursor, statement, parameters, *_):
        if "FROM work" in statement and "EXPLAIN" not in statement:
            plans.extend(cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall())

    event.listen(ledger.engine, "before_cursor_execute", explain)
    ledger.find(status=status, before=before, reason_code="source_down")
    event.remove(ledger.engine, "before_cursor_execute", explain)
    index = "ix_work_refused" if status == "failed" else "ix_work_unfinished"
    assert index in plans[0][-1]

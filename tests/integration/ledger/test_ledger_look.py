"""Looking at the ledger, forgetting old rows, and its views for SQL users."""

from __future__ import annotations

import pyarrow as pa

from domain.shared.work import WorkRequest
from resources.database.arrow import read_arrow
from resources.ledger.schema import VIEWS

FILL = "market.fill"


def finish(ledger, key: str, fingerprint: str = "f", *, failing: bool = False, once: bool = False) -> None:
    ledger.enqueue([WorkRequest(FILL, key, fingerprint, once=once)])
    with ledger.lease(FILL, [key], f"run {key} {fingerprint}", heartbeat=False) as lease:
        if failing:
            lease.fail(key, "no")


def test_find_filters_and_shows_the_newest_first(ledger):
    ledger.enqueue(
        [WorkRequest(FILL, key, "f") for key in ("a_1", "a_2", "ab1")]
        + [WorkRequest("records.hook", "a_1", "f")]
    )
    assert [row.key for row in ledger.find(kind=FILL)] == ["ab1", "a_2", "a_1"]
    assert [row.key for row in ledger.find(kind=FILL, key_prefix="a_")] == ["a_2", "a_1"], "_ is no wildcard"
    assert [row.key for row in ledger.find(limit=1)] == ["a_1"]
    assert ledger.find(status="failed") == []
    assert len(ledger.find(status=["queued", "failed"])) == 4


def test_running_and_counts(ledger):
    finish(ledger, "a")
    ledger.enqueue([WorkRequest(FILL, "b", "f")])
    with ledger.lease(FILL, ["c"], "run", heartbeat=False):
        assert [row.key for row in ledger.running()] == ["c"]
        assert ledger.counts() == {FILL: {"completed": 1, "queued": 1, "running": 1}}
    assert ledger.running() == []
    assert ledger.get(999) is None


def test_purge_forgets_old_finished_rows_with_their_events(ledger, clock):
    finish(ledger, "old")
    (old,) = ledger.find()
    ledger.enqueue([WorkRequest(FILL, "waiting", "f")])
    clock.advance(days=100)
    finish(ledger, "new")
    assert ledger.purge(clock.now) == 1
    assert {row.key for row in ledger.find()} == {"waiting", "new"}
    assert ledger.events(old.id) == []


def test_purge_keeps_what_still_forbids_something(ledger, clock):
    finish(ledger, "failed", "f1", failing=True)
    finish(ledger, "failed", "f2", failing=True)
    finish(ledger, "event", once=True)
    clock.advance(days=100)
    assert ledger.purge(clock.now) == 1
    report = ledger.enqueue([WorkRequest(FILL, "failed", "f2"), WorkRequest(FILL, "event", "f", once=True)])
    assert (report.counts["refused"], report.counts["absorbed"]) == (1, 1)


def test_an_id_is_never_given_twice(ledger, clock):
    finish(ledger, "a")
    (row,) = ledger.find()
    clock.advance(days=1)
    ledger.purge(clock.now)
    assert ledger.enqueue([WorkRequest(FILL, "b", "f")]).created[0].id > row.id


def test_read_arrow__rows_of_every_type__gives_a_typed_table(ledger, clock):
    empty = read_arrow(ledger.engine, VIEWS["ops.work"])
    finish(ledger, "a")
    ledger.enqueue([WorkRequest(FILL, "b", "f", params={"名": 1})])
    full = read_arrow(ledger.engine, VIEWS["ops.work"])
    assert empty.num_rows == 0
    assert full.schema == empty.schema
    assert full.column("status").to_pylist() == ["completed", "queued"]
    assert full.column("params").to_pylist() == ["{}", '{"名": 1}']
    assert full.schema.field("created_at").type == pa.timestamp("us", tz="UTC")
    assert full.column("created_at")[0].as_py() == clock()

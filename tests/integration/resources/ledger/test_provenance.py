"""Provenance: records of partitions, how often they were seen, and their revisions."""

from __future__ import annotations

import pytest

from resources.ledger.provenance import PartitionRecord

DAILY = "market.normalized_daily"


@pytest.fixture
def provenance(ledger):
    return ledger.provenance


def record(partition: str = "2026-11-17", digest: str = "d1", **more) -> PartitionRecord:
    return PartitionRecord(DAILY, partition, more.pop("rows", 5000), digest, **more)


def only(provenance) -> PartitionRecord:
    (found,) = provenance.records([DAILY]).values()
    return found


def test_record__new_partition__keeps_what_was_given(provenance, clock):
    provenance.record(
        [record(snapshot_id=2**62, inputs={"cal": "3:x"}, detail={"ratio": 0.97, "名": "值"}, run_id="run")]
    )
    found = only(provenance)
    assert (found.rows, found.digest, found.snapshot_id, found.run_id) == (5000, "d1", 2**62, "run")
    assert (found.inputs, found.detail) == ({"cal": "3:x"}, {"ratio": 0.97, "名": "值"})
    assert (found.seen_count, found.generation) == (1, 1)
    assert found.committed_at == found.checked_at == clock()


def test_record__same_content_again__counts_it(provenance, clock):
    provenance.record([record(snapshot_id=7)])
    first = clock()
    clock.advance(hours=6)
    provenance.record([record(detail={"status": "source_says_so"}, run_id="second")])
    found = only(provenance)
    assert (found.seen_count, found.generation, found.committed_at, found.checked_at) == (
        2,
        1,
        first,
        clock(),
    )
    assert (found.snapshot_id, found.run_id, found.detail) == (7, "second", {"status": "source_says_so"})


def test_record__other_content__starts_a_new_generation(provenance, clock):
    provenance.record([record(snapshot_id=7)])
    provenance.record([record(snapshot_id=7)])
    clock.advance(hours=6)
    provenance.record([record(digest="d2")])
    found = only(provenance)
    assert (found.seen_count, found.generation, found.committed_at) == (1, 2, clock())
    assert found.snapshot_id is None, "the old snapshot does not hold the new content"
    assert provenance.pending_revisions() == []


def test_records__tables_and_partitions__are_found(provenance):
    provenance.record(
        [record("2026-11-16"), record("2026-11-17"), PartitionRecord("market.coverage", "2026-11-17", 1, "c")]
    )
    assert set(provenance.records([DAILY], ["2026-11-17", "2026-11-18"])) == {(DAILY, "2026-11-17")}
    assert len(provenance.records([DAILY, "market.coverage"])) == 3
    assert provenance.records([DAILY], []) == {}
    assert provenance.records([]) == {}


def test_record__two_entries_for_a_partition__keeps_the_last(provenance):
    provenance.record([record(digest="d1"), record(digest="d2")])
    assert (only(provenance).digest, only(provenance).generation) == ("d2", 1)


def test_record__revision__pins_its_snapshots_until_it_is_recorded(provenance, clock):
    provenance.record([record(snapshot_id=7), record("2026-11-16", snapshot_id=7)], revision=True)
    assert provenance.pending_revisions() == []
    clock.advance(days=1)
    provenance.record(
        [record(digest="d2", rows=5001, snapshot_id=9), record("2026-11-16", snapshot_id=9)], revision=True
    )
    (revision,) = provenance.pending_revisions(DAILY)
    assert (revision.partition, revision.seen_at) == ("2026-11-17", clock())
    assert (revision.old_snapshot_id, revision.new_snapshot_id) == (7, 9)
    assert provenance.pinned_snapshots(DAILY) == {7, 9}
    assert provenance.pinned_snapshots("market.coverage") == set()
    provenance.mark_recorded([revision])
    assert provenance.pending_revisions() == []
    assert provenance.pinned_snapshots(DAILY) == set()


def test_record__thousands_at_once__are_read_whole(provenance):
    entries = [
        PartitionRecord(f"market.t{n % 4}", f"p{n // 4}", n, f"d{n}", inputs={"a": "1:x"})
        for n in range(3_000)
    ]
    provenance.record(entries)
    found = provenance.records([f"market.t{n}" for n in range(4)])
    assert len(found) == 3_000
    assert found["market.t3", "p749"].rows == 2_999

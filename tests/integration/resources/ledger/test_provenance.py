"""Provenance: records of partitions, how often they were seen, and their revisions."""

from __future__ import annotations

import pytest

from resources.ledger.provenance import PartitionRecord

DAILY = "market.normalized_daily"


@pytest.fixture
def provenance(ledger):
    return ledger.provenance


def record(partition: str = "2026-11-17", digest: str = "d1", **more) -> PartitionRecord:
    return PartitionRecord(DAILY, partition, 5000, digest, **more)


def only(provenance) -> PartitionRecord:
    (found,) = provenance.records([DAILY]).values()
    return found


def test_record__new_partition__keeps_what_was_given(provenance, clock):
    given = {"inputs": {"cal": "3:x"}, "detail": {"ratio": 0.97, "名": "值"}, "run_id": "run"}
    provenance.record([record(digest="older"), record(snapshot_id=2**62, **given)])
    assert only(provenance) == record(snapshot_id=2**62, committed_at=clock(), checked_at=clock(), **given)


def test_record__same_content_again__counts_it(provenance, clock):
    provenance.record([record(snapshot_id=7)])
    first = clock()
    clock.advance(hours=6)
    provenance.record([record(detail={"status": "source_says_so"}, run_id="second")])
    found = only(provenance)
    assert (found.seen_count, found.generation) == (2, 1)
    assert (found.committed_at, found.checked_at) == (first, clock())
    assert (found.snapshot_id, found.run_id, found.detail) == (7, "second", {"status": "source_says_so"})


def test_record__other_content__starts_a_new_generation(provenance, clock):
    for _ in range(2):
        provenance.record([record(snapshot_id=7)])
    clock.advance(hours=6)
    provenance.record([record(digest="d2")])
    found = only(provenance)
    assert (found.seen_count, found.generation, found.committed_at) == (1, 2, clock())
    assert found.snapshot_id is None, "the old snapshot does not hold the new content"
    assert provenance.pending_revisions() == []


def test_records__tables_and_partitions__are_found(provenance):
    provenance.record(
        [record("2026-11-16"), record("2026-11-17"), PartitionRecord("market.coverage", "2026-11-17", 0, "c")]
    )
    assert set(provenance.records([DAILY], ["2026-11-17", "2026-11-18"])) == {(DAILY, "2026-11-17")}
    assert len(provenance.records([DAILY, "market.coverage"])) == 3
    assert provenance.records([DAILY], []) == provenance.records([]) == {}
    seen = {row[:4] for row in provenance.contents([DAILY, "market.coverage"])}
    assert {(DAILY, "2026-11-16"), (DAILY, "2026-11-17"), ("market.coverage", "2026-11-17")} == {
        row[:2] for row in seen
    }
    assert ("market.coverage", "2026-11-17", 0, "c") in seen


def test_stamp__a_record_is_written_or_lost__changes(provenance, clock):
    stamps = [provenance.stamp([DAILY])]
    provenance.record([record("2026-11-16")])
    stamps.append(provenance.stamp([DAILY]))
    clock.advance(hours=6)
    provenance.record([record("2026-11-16")])
    stamps.append(provenance.stamp([DAILY]))
    assert len(set(stamps)) == 3
    assert provenance.stamp(["market.coverage"]) == stamps[0]


def test_record__revision__pins_its_snapshots_until_it_is_recorded(provenance, clock):
    days = ("2026-11-16", "2026-11-17")
    provenance.record([record(day, snapshot_id=7) for day in days], revision=True)
    assert provenance.pending_revisions() == []
    clock.advance(days=1)
    provenance.record([record(days[0], snapshot_id=9), record(digest="d2", snapshot_id=9)], revision=True)
    (revision,) = provenance.pending_revisions(DAILY)
    assert (revision.partition, revision.seen_at) == (days[1], clock())
    assert (revision.old_snapshot_id, revision.new_snapshot_id) == (7, 9)
    assert provenance.pinned_snapshots(DAILY) == {7, 9}
    assert provenance.pinned_snapshots("market.coverage") == set()
    provenance.mark_recorded([revision])
    assert provenance.pinned_snapshots(DAILY) == set()

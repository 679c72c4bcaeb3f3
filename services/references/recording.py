"""What is known of a source's partition, to which several processes may add at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from domain.shared.packaged import packaged
from domain.shared.state import PartitionState
from domain.shared.table import Table
from resources.ledger.provenance import PartitionRecord
from services.partitions import Series, state_of

if TYPE_CHECKING:
    from services.partitions import PartitionReport
    from services.references.service import ReferencesService


def record_version(service: ReferencesService, record: PartitionRecord) -> None:
    """Record the version of a partition after a commit.

    If another process committed to it since, theirs is recorded: the last writer sees the last version.
    """
    table, partition = record.table_name, record.partition
    while True:
        service.provenance.record([record])
        now = service.lake.version(table, partition)
        if (now.rows, now.digest) == (record.rows, record.digest) or not now.readable:
            return
        record = replace(record, rows=now.rows, digest=now.digest, snapshot_id=None)


def record_of(report: PartitionReport, run_id: str) -> PartitionRecord:
    """What a report says that a commit made."""
    return PartitionRecord(
        table_name=report.table.name,
        partition=report.partition,
        rows=report.version.rows,
        digest=report.version.digest,
        snapshot_id=report.snapshot_id,
        inputs=report.inputs,
        detail=report.detail,
        run_id=run_id,
    )


def per_day(service: ReferencesService, table: Table, source: str) -> Series:
    """How many rows of a source are of which day, of the last days that have any."""
    found = service.lake.query(
        packaged(__file__, "per_day").format(table=table.name),
        params={"source": source},
        partitions={table.name: [source]},
    )
    return Series([(str(day), count) for day, count in zip(*found.to_pydict().values(), strict=True)][::-1])


def state_in(service: ReferencesService, table: Table, source: str) -> PartitionState:
    """One partition: what the lake holds beside what was recorded."""
    record = service.provenance.records([table.name], [source]).get((table.name, source))
    return state_of(service.lake.version(table.name, source), record)

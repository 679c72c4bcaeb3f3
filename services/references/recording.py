"""What is known of a source's partition, to which several processes may add at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.shared.compute import packaged
from domain.shared.state import PartitionState
from domain.shared.table import Table
from resources.ledger.provenance import PartitionRecord
from services.partitions import Series, state_of

if TYPE_CHECKING:
    from services.partitions import PartitionReport
    from services.references.service import ReferencesService


def record_version(service: ReferencesService, report: PartitionReport, run_id: str) -> None:
    """Record the version of a partition after a commit.

    If another process committed to it since, theirs is recorded: the last writer sees the last version.
    """
    table, partition, version, snapshot = (
        report.table.name,
        report.partition,
        report.version,
        report.snapshot_id,
    )
    while True:
        service.provenance.record(
            [
                PartitionRecord(
                    table_name=table,
                    partition=partition,
                    rows=version.rows,
                    digest=version.digest,
                    snapshot_id=snapshot,
                    inputs=report.inputs,
                    detail=report.detail,
                    run_id=run_id,
                )
            ]
        )
        now = service.lake.version(table, partition)
        if now == version or not now.readable:
            return
        version, snapshot = now, None


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

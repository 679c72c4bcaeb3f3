"""Maintenance of the lake: expire snapshots, compact closed months, delete files that nothing refers to."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import dagster as dg

from assets.policies.definition import OWNERS
from assets.policies.failure import classified
from domain.shared.error import PerennialError
from domain.shared.table import Table
from services.resource import StorageResource

if TYPE_CHECKING:
    from resources.lake.client import Lake
    from resources.ledger.client import Ledger

KEEP_WORK = timedelta(days=90)
_SKIPPED = "`perennial status` says what heals corrupt files; for the others check the disk or the store"


def lake_maintenance(tables: Sequence[Table]) -> dg.AssetsDefinition:
    """The asset that maintains these tables."""

    @dg.asset(
        key=["ops", "lake_maintenance"],
        group_name="ops",
        owners=OWNERS,
        kinds={"iceberg"},
        description="Maintenance of every table; without it commits grow slower with each one.",
    )
    def maintained(context: dg.AssetExecutionContext, storage: StorageResource) -> dg.MaterializeResult:
        return _maintain(context, storage.lake(tables), storage.ledger(()), tables)

    return maintained


def _maintain(
    context: dg.AssetExecutionContext, lake: "Lake", ledger: "Ledger", tables: Sequence[Table]
) -> dg.MaterializeResult:
    now = ledger.machine_clock()
    month = now.date().replace(day=1).isoformat()
    done, failed = [], []
    for table in tables:
        try:
            report = lake.maintain(
                table.name,
                keep_snapshots=ledger.provenance.pinned_snapshots(table.name),
                now=now,
                compact_before=month,
            )
        except PerennialError as error:
            # One table that fails must not keep the others from their maintenance.
            context.log.warning("%s: %s", table.name, error.message)
            failed.append(f"{table.name}: {error.message}")
            continue
        log = context.log.warning if report.skipped else context.log.info
        log("%s", report)
        done.append(report)
    with classified():
        deleted = ledger.purge(ledger.clock() - KEEP_WORK)
    if failed:
        raise dg.Failure("; ".join(failed), allow_retries=False)
    head = "| table | snapshots expired | files compacted | files deleted |\n|---|---|---|---|\n"
    lines = [f"| {r.table} | {r.expired_snapshots} | {r.compacted_files} | {r.deleted_files} |" for r in done]
    skipped = [f"- {why}" for report in done for why in report.skipped]
    shown = {"skipped_files": dg.MetadataValue.md("\n".join([*skipped, "", _SKIPPED]))} if skipped else {}
    return dg.MaterializeResult(
        metadata={
            "tables": dg.MetadataValue.md(head + "\n".join(lines)),
            "files_deleted": sum(r.deleted_files for r in done),
            "work_rows_deleted": deleted,
            **shown,
        }
    )

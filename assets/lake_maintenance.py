"""Upkeep of the lake: expire snapshots, compact closed months, delete files nobody refers to."""

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
_HEALS = "`perennial status` says what heals them; their months stay as they are until then"
_LASTS = "their months stay as they are; if it lasts, look at the disk or the store"


def lake_maintenance(tables: Sequence[Table]) -> dg.AssetsDefinition:
    """The asset that takes care of these tables."""

    @dg.asset(
        key=["ops", "lake_maintenance"],
        group_name="ops",
        owners=OWNERS,
        kinds={"iceberg"},
        description="One round of upkeep over every table; without it commits grow slower with each one.",
    )
    def maintained(context: dg.AssetExecutionContext, storage: StorageResource) -> dg.MaterializeResult:
        return _maintain(context, storage.lake(tables), storage.ledger(()), tables)

    return maintained


def _maintain(
    context: dg.AssetExecutionContext, store: "Lake", book: "Ledger", tables: Sequence[Table]
) -> dg.MaterializeResult:
    now = book.machine_clock()
    month = now.date().replace(day=1).isoformat()
    lines, freed, failed, corrupt, unavailable = [], 0, [], [], []
    for table in tables:
        try:
            report = store.maintain(
                table.name,
                keep_snapshots=book.provenance.pinned_snapshots(table.name),
                now=now,
                compact_before=month,
            )
        except PerennialError as error:
            # One table in trouble must not keep the others from their care.
            context.log.warning("%s: %s", table.name, error.message)
            failed.append(f"{table.name}: {error.message}")
            continue
        context.log.info("%s: %s", table.name, report)
        if report.corrupt_files:
            files = ", ".join(report.corrupt_files)
            context.log.warning("%s: these data files cannot be read: %s; %s", table.name, files, _HEALS)
            corrupt += [f"- {table.name}: `{file}`" for file in report.corrupt_files]
        for why in report.unavailable:
            context.log.warning("%s: %s; %s", table.name, why, _LASTS)
            unavailable.append(f"- {table.name}: {why}")
        told = (table.name, report.expired_snapshots, report.compacted_files, report.deleted_files)
        lines.append(f"| {' | '.join(map(str, told))} |")
        freed += report.deleted_files
    with classified():
        forgotten = book.purge(book.clock() - KEEP_WORK)
    if failed:
        raise dg.Failure("; ".join(failed), allow_retries=False)
    troubles = {
        name: dg.MetadataValue.md("\n".join([*files, "", what]))
        for name, files, what in (("damaged_files", corrupt, _HEALS), ("unread_files", unavailable, _LASTS))
        if files
    }
    head = "| table | snapshots expired | files compacted | files deleted |\n|---|---|---|---|\n"
    return dg.MaterializeResult(
        metadata={
            "tables": dg.MetadataValue.md(head + "\n".join(lines)),
            "files_deleted": freed,
            "work_rows_forgotten": forgotten,
            **troubles,
        }
    )

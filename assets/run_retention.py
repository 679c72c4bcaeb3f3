"""Deletion of old runs: Dagster keeps every run and event for ever unless they are deleted.

A run that is the newest materialization of any partition stays: deleting it would make the partition look
as if it had never been there.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import dagster as dg

from assets.policies.definition import OWNERS
from domain.shared.clock import machine_clock

KEEP = timedelta(days=30)
AT_ONCE = 500
"""Runs deleted per night, or a few more: the first night of an old instance must not last until morning."""
FETCHED_AT_ONCE = 500
FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


@dg.asset(
    key=["ops", "run_retention"],
    group_name="ops",
    owners=OWNERS,
    kinds={"dagster"},
    description="Deletes finished runs, their events and logs after 30 days, unless they show what exists.",
)
def run_retention(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    deleted, kept = delete_runs(context.instance, machine_clock() - KEEP)
    return dg.MaterializeResult(metadata={"runs_deleted": deleted, "runs_kept": kept})


def delete_runs(instance: dg.DagsterInstance, horizon: datetime, at_once: int = AT_ONCE) -> tuple[int, int]:
    """Delete finished runs created before `horizon`; returns how many were deleted and how many must stay."""
    newest: set[str] | None = None
    gone: list[str] = []
    kept, cursor = 0, None
    while len(gone) < at_once:
        # What stays is old by nature: it is paged past, or it would fill every page in the end.
        page = instance.get_run_records(
            dg.RunsFilter(statuses=FINISHED, created_before=horizon),
            limit=at_once,
            ascending=True,
            cursor=cursor,
        )
        if not page:
            break
        if newest is None:
            newest = {run_id for key in instance.all_asset_keys() for run_id in _newest(instance, key)}
        ids = [record.dagster_run.run_id for record in page]
        gone += [run_id for run_id in ids if run_id not in newest]
        kept += sum(run_id in newest for run_id in ids)
        cursor = ids[-1]
    for run_id in gone:
        # First its logs: nothing finds those of a run that is gone.
        instance.compute_log_manager.delete_logs(prefix=[run_id])
        instance.delete_run(run_id)
    return len(gone), kept


def _newest(instance: dg.DagsterInstance, key: dg.AssetKey) -> Iterator[str]:
    """The runs whose events say of each partition of an asset, or of the whole of it, that it is there."""
    whole = instance.get_latest_materialization_event(key)
    if whole is not None:
        yield whole.run_id
    newest = instance.get_latest_storage_id_by_partition(key, dg.DagsterEventType.ASSET_MATERIALIZATION)
    for events in _batches(sorted(newest.values()), FETCHED_AT_ONCE):
        wanted = dg.AssetRecordsFilter(asset_key=key, storage_ids=events)
        for record in instance.fetch_materializations(wanted, limit=len(events)).records:
            yield record.run_id


def _batches(values: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]

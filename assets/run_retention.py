"""Forgetting old runs: Dagster keeps every run and event for ever unless somebody deletes them.

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
"""Runs looked at per night, so that the first night of an old instance does not last until morning."""
FETCHED_AT_ONCE = 500
FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


@dg.asset(
    key=["ops", "run_retention"],
    group_name="ops",
    owners=OWNERS,
    kinds={"dagster"},
    description="Deletes finished runs and their events after 30 days, except those that show what exists.",
)
def run_retention(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    deleted, kept = forget_runs(context.instance, machine_clock() - KEEP)
    return dg.MaterializeResult(metadata={"runs_deleted": deleted, "runs_kept": kept})


def forget_runs(instance: dg.DagsterInstance, horizon: datetime) -> tuple[int, int]:
    """Delete finished runs created before `horizon`; returns how many were deleted and how many must stay."""
    old = instance.get_run_records(
        dg.RunsFilter(statuses=FINISHED, created_before=horizon), limit=AT_ONCE, ascending=True
    )
    if not old:
        return 0, 0
    telling = {run_id for key in instance.all_asset_keys() for run_id in _newest(instance, key)}
    gone = [r.dagster_run.run_id for r in old if r.dagster_run.run_id not in telling]
    for run_id in gone:
        instance.delete_run(run_id)
    return len(gone), len(old) - len(gone)


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

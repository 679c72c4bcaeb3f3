"""Takes work back from workers that died, and ends the runs they left behind.

A run is judged by its lease, never by when its process started: a lease is renewed while the worker lives.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg

from assets.policies.tags import DISPATCH
from domain.shared.work import Kind
from resources.ledger.client import Ledger
from resources.ledger.model import WORKER
from services.resource import StorageResource

SILENT_AFTER = timedelta(minutes=2)
"""A started run that takes work, holds none and has logged nothing for so long is dead."""
STARTS_WITHIN = timedelta(minutes=10)
"""The same for a run that takes work and has not started: its worker may wait for a machine."""
ORIGIN = ".dagster/perennial_origin"
"""The tag of runs that a command started without a dispatch; they too take work."""
LONG_SILENT_AFTER = timedelta(minutes=30)
"""The same for other runs: they may do something that holds no work, such as upkeep."""

BEGUN = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]


def work_sweep_sensor(kinds: Sequence[Kind]) -> dg.SensorDefinition:
    """The sensor over work of these kinds."""

    @dg.sensor(
        name="work_sweep_sensor",
        minimum_interval_seconds=10,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Queues the work of dead workers again and ends their runs.",
    )
    def swept_work(context: dg.SensorEvaluationContext, storage: StorageResource) -> dg.SkipReason:
        swept, ended = sweep(context.instance, storage.ledger(kinds))
        if not swept and not ended:
            return dg.SkipReason("no worker is dead: every running work item has a live one")
        context.log.info("took back %d work items, ended %d dead runs", swept, ended)
        return dg.SkipReason(f"took back {swept} work items, ended {ended} dead runs")

    return swept_work


def sweep(
    instance: dg.DagsterInstance,
    ledger: Ledger,
    now: datetime | None = None,
    is_dead: Callable[[str], bool] = lambda _: False,
) -> tuple[int, int]:
    """Return how many rows were taken back and how many runs were ended.

    `now` is the moment by which the silence of runs is judged. `is_dead` knows, by their id, runs whose
    process is surely gone: nobody waits for their lease.
    """
    killed = [run for run in instance.get_runs(dg.RunsFilter(statuses=BEGUN)) if is_dead(run.run_id)]
    for run in killed:
        instance.report_run_failed(run, "its command was killed")
    holders = {row.run_id for row in ledger.running() if row.run_id and not row.run_id.startswith(WORKER)}
    runs = instance.get_runs(dg.RunsFilter(run_ids=sorted(holders))) if holders else []
    alive = {run.run_id: run for run in runs if not run.is_finished}
    swept = ledger.sweep(finished_runs=holders - alive.keys())
    dead = {row.run_id for row in swept if row.run_id in alive}
    for run_id in dead:
        instance.report_run_failed(alive[run_id], "its worker is dead: the lease of its work expired")
    silent = list(_silent(instance, holders | dead, now or datetime.now(UTC)))
    for run in silent:
        instance.report_run_failed(run, "its worker is dead: it holds no work and logs nothing")
    return len(swept), len(killed) + len(dead) + len(silent)


def end_interrupted(instance: dg.DagsterInstance, ledger: Ledger, is_ours: Callable[[str], bool]) -> None:
    """End our begun runs, by their id, as a person interrupted them, and give back what they hold.

    A run that still executes may meanwhile begin, or lease its next table: until nothing is left.
    """
    begun = dg.RunsFilter(statuses=[*BEGUN, dg.DagsterRunStatus.CANCELING])
    while ours := [run for run in instance.get_runs(begun) if is_ours(run.run_id)]:
        for run in ours:
            ledger.release_run(run.run_id)
            instance.report_run_canceled(run, "interrupted by a person")
            ledger.release_run(run.run_id)


def _silent(instance: dg.DagsterInstance, holders: Collection[str], now: datetime) -> Iterator[dg.DagsterRun]:
    """Runs that hold nothing and have been silent: killed before they took work, or between two leases."""
    for record in instance.get_run_records(dg.RunsFilter(statuses=BEGUN)):
        run = record.dagster_run
        horizon = now - _may_be_silent(run)
        if run.run_id in holders or record.update_timestamp > horizon:
            continue
        newest = instance.get_records_for_run(run.run_id, limit=1, ascending=False).records
        if not newest or newest[0].event_log_entry.timestamp < horizon.timestamp():
            yield run


def _may_be_silent(run: dg.DagsterRun) -> timedelta:
    if DISPATCH not in run.tags and ORIGIN not in run.tags:
        return LONG_SILENT_AFTER
    return SILENT_AFTER if run.status == dg.DagsterRunStatus.STARTED else STARTS_WITHIN

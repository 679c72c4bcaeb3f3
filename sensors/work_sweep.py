"""Takes work back from workers that died, and ends the runs they left behind.

A run is judged by its lease, never by when its process started: a lease is renewed while the worker lives.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg

from assets.policies.tags import DISPATCH
from domain.shared.work import Kind
from resources.ledger.client import Ledger
from resources.ledger.model import WORKER
from resources.ledger.resource import LedgerResource
from resources.ledger.transitions import CLOCKS_APART
from sensors.processes import PROCESS, is_gone

SILENT_AFTER = timedelta(minutes=10)
"""A started run that came for work, holds none and has logged nothing for so long is dead."""
ORIGIN = "perennial/origin"
"""The tag of runs that a command started; they too come for work."""
LONG_SILENT_AFTER = timedelta(minutes=30)
"""The same for runs a person started in the UI: they may do something that holds no work, such as upkeep."""

BEGUN = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]


def work_sweep_sensor(kinds: Sequence[Kind]) -> dg.SensorDefinition:
    """The sensor over work of these kinds."""

    @dg.sensor(
        name="work_sweep_sensor",
        minimum_interval_seconds=10,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Queues the work of dead workers again and ends their runs.",
    )
    def swept_work(context: dg.SensorEvaluationContext, ledger: LedgerResource) -> dg.SkipReason:
        swept, ended = sweep(context.instance, ledger.open(kinds))
        if not swept and not ended:
            return dg.SkipReason("every running piece of work has a live worker")
        return dg.SkipReason(f"took back {swept} pieces of work, ended {ended} dead runs")

    return swept_work


def sweep(instance: dg.DagsterInstance, ledger: Ledger, now: datetime | None = None) -> tuple[int, int]:
    """Returns how many rows were taken back and how many runs were ended.

    `now` stands in for the moment by which the silence of runs is judged.
    """
    holders = {row.run_id for row in ledger.running() if row.run_id and not row.run_id.startswith(WORKER)}
    alive = (
        {
            record.dagster_run.run_id: record.dagster_run
            for record in instance.get_run_records(dg.RunsFilter(run_ids=sorted(holders)))
            if not record.dagster_run.is_finished
        }
        if holders
        else {}
    )
    gone = {run_id for run_id, run in alive.items() if is_gone(run.tags.get(PROCESS))}
    swept = ledger.sweep(finished_runs=(holders - alive.keys()) | gone)
    dead = gone | {s.run_id for s in swept if s.run_id in alive}
    for run_id in dead:
        instance.report_run_failed(
            alive[run_id],
            "its process is gone"
            if run_id in gone
            else "its worker has shown no life: the lease of its work ran out",
        )
    silent = list(_silent(instance, holders | dead, now or datetime.now(UTC)))
    for run in silent:
        instance.report_run_failed(run, "its worker has shown no life: it holds no work and logs nothing")
    return len(swept), len(dead) + len(silent)


def _silent(instance: dg.DagsterInstance, known: Iterable[str], now: datetime) -> Iterable[dg.DagsterRun]:
    """Runs that started, hold nothing, and have been quiet: killed before they took work, or between two.

    Of one that has not started nothing tells, but that the process it was to live in is gone.
    """
    skip = set(known)
    latest = now + CLOCKS_APART
    for record in instance.get_run_records(dg.RunsFilter(statuses=BEGUN)):
        run = record.dagster_run
        comes_for_work = DISPATCH in run.tags or ORIGIN in run.tags
        horizon = now - (SILENT_AFTER if comes_for_work else LONG_SILENT_AFTER)
        if run.run_id in skip:
            continue
        if is_gone(run.tags.get(PROCESS)):
            yield run
            continue
        if run.status != dg.DagsterRunStatus.STARTED or horizon < record.update_timestamp <= latest:
            continue
        newest = instance.get_records_for_run(run.run_id, limit=1, ascending=False).records
        if not newest or newest[0].event_log_entry.timestamp < horizon.timestamp():
            yield run
        elif newest[0].event_log_entry.timestamp > latest.timestamp():
            # Nobody can tell how long ago that was: its silence counts from this word on.
            instance.report_engine_event("the clock was put back since this run's last word", run)

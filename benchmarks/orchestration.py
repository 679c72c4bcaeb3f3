"""Dagster's part: 250 partitions in one run or in 250, on our event log and on the one shipped.

The asset does nothing but log, per partition, that it was materialized and checked. `queue` is run apart
from it: from work that is due to the run that starts, with the daemon.
"""

import os
import statistics
import tempfile
import time
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg

from assets.policies.recording import written_together
from tests.dagster_home import opened
from tests.settings import make_settings

COUNT = 250
SINGLE = 25
"""Runs of one partition each that are measured; 250 of them take ten times as long."""
DAYS = dg.DailyPartitionsDefinition("2022-01-03", end_date="2023-01-01")
KEY = dg.AssetKey(["bench", "table"])


def log_days(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    several = len(context.partition_keys) > 1
    with written_together(context.instance):
        for day in context.partition_keys:
            if several:
                context.log_event(dg.AssetMaterialization(KEY, partition=day, metadata={"rows": 1}))
            context.add_asset_metadata({"rows": 1}, asset_key=KEY, partition_key=day)
            context.log_event(
                dg.AssetCheckEvaluation(asset_key=KEY, check_name="whole", passed=True, partition=day)
            )
    return dg.MaterializeResult(check_results=[dg.AssetCheckResult(check_name="whole", passed=True)])


def _asset() -> dg.AssetsDefinition:
    return dg.asset(
        key=KEY,
        partitions_def=DAYS,
        backfill_policy=dg.BackfillPolicy.single_run(),
        check_specs=[dg.AssetCheckSpec("whole", asset=KEY)],
    )(log_days)


def run() -> dict[str, float]:
    os.environ["DAGSTER_EVENT_BATCH_SIZE"] = "1000"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job = dg.Definitions([_asset()]).resolve_implicit_global_asset_job_def()
        keys = list(DAYS.get_partition_keys())[:COUNT]
        with tempfile.TemporaryDirectory() as folder:
            ours = _one_run(Path(folder) / "ours", job, keys)
            shipped = _one_run(Path(folder) / "shipped", job, keys, shipped=True)
            single = _many_runs(Path(folder) / "single", job, keys[:SINGLE]) * COUNT
    print(
        f"{COUNT} partitions: {ours:.1f} s in one run, {shipped:.1f} s with the event log as shipped, "
        f"{single:.0f} s in a run each"
    )
    return {"one_run_shipped_over_ours": shipped / ours, "run_each_over_one_run": single / ours}


QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def _one_run(folder: Path, job: dg.JobDefinition, keys: list[str], *, shipped: bool = False) -> float:
    with opened(folder, shipped=shipped) as instance:
        began = time.monotonic()
        tags = {
            "dagster/asset_partition_range_start": keys[0],
            "dagster/asset_partition_range_end": keys[-1],
        }
        assert job.execute_in_process(instance=instance, tags=tags, run_config=QUIET).success
        return time.monotonic() - began


def _many_runs(folder: Path, job: dg.JobDefinition, keys: list[str]) -> float:
    """Seconds of each."""
    with opened(folder) as instance:
        began = time.monotonic()
        for key in keys:
            assert job.execute_in_process(instance=instance, partition_key=key, run_config=QUIET).success
        return (time.monotonic() - began) / len(keys)


def price_of_a_run() -> float:
    """Seconds of a run that does nothing, in a process that is there already: none is cheaper."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        job = dg.Definitions([_asset()]).resolve_implicit_global_asset_job_def()
        return _many_runs(Path(folder), job, list(DAYS.get_partition_keys())[:SINGLE])


def queue() -> dict[str, float]:
    """With `perennial up`: a day is dropped again and again; how long until the run that heals it starts."""
    from orchestration.cli.up import free_port
    from tests.e2e.running import DAILY, Running

    waits, starts = [], []
    with tempfile.TemporaryDirectory() as folder:
        settings = make_settings(
            home=Path(folder) / "home", ui_port=free_port(), sandbox_port=free_port(), api_port=0
        )
        up = Running(settings)
        up.start()
        try:
            up.settled(400)
            for day in up.days()[-4:]:
                known = {r["runId"] for r in up.runs()}
                broken = datetime.now(UTC)
                up.break_lake("--drop-day", day)
                whole = up.wait(
                    lambda k=known: [r for r in up.runs() if r["runId"] not in k and r["endTime"]], 120, day
                )
                run = next(r for r in whole if DAILY in r["tables"])
                waits.append(run["startTime"] - run["creationTime"])
                starts.append(run["startTime"] - broken.timestamp())
                time.sleep(timedelta(seconds=2).total_seconds())
        finally:
            up.stop()
    print(
        f"queued to started {statistics.median(waits):.1f} s, "
        f"broken to started {statistics.median(starts):.1f} s "
        f"(median of {len(waits)}, the tool that breaks it included)"
    )
    return {"queued_to_started_seconds": statistics.median(waits)}

"""Our event log on the databases of Dagster's: same files, same answers, many events in one transaction.

These tests fail loudly when an upgrade moves the private parts that `orchestration/event_log.py` uses.
"""

import re
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.policies.recording import written_together
from orchestration.event_log import EventLog
from orchestration.settings import PROJECT_ROOT
from tests.dagster_home import opened

DAYS = dg.StaticPartitionsDefinition([f"2026-11-{day:02}" for day in range(1, 21)])
PRICES = dg.AssetKey(["market", "prices"])


def fill(context: dg.AssetExecutionContext) -> Iterator[dg.AssetCheckResult]:
    with written_together(context.instance):
        for day in context.partition_keys:
            context.log_event(dg.AssetMaterialization(PRICES, partition=day, metadata={"rows": 5}))
            context.log_event(
                dg.AssetCheckEvaluation(
                    asset_key=PRICES, check_name="whole", passed=day != "2026-11-03", partition=day
                )
            )
    yield dg.AssetCheckResult(asset_key=PRICES, check_name="whole", passed=False)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of single-run backfills being beta
    prices = dg.multi_asset(
        name="prices",
        specs=[dg.AssetSpec(PRICES, skippable=True, partitions_def=DAYS)],
        backfill_policy=dg.BackfillPolicy.single_run(),
        check_specs=[dg.AssetCheckSpec("whole", asset=PRICES)],
    )(fill)


@pytest.fixture(autouse=True)
def batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_EVENT_BATCH_SIZE", "7")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with opened(tmp_path / "home") as instance:
        assert isinstance(instance.event_log_storage, EventLog)
        yield instance


def run_all(instance: dg.DagsterInstance) -> str:
    job = dg.Definitions([prices]).resolve_implicit_global_asset_job_def()
    keys = DAYS.get_partition_keys()
    return job.execute_in_process(
        instance=instance,
        tags={
            "dagster/asset_partition_range_start": keys[0],
            "dagster/asset_partition_range_end": keys[-1],
        },
    ).run_id


def report(instance: dg.DagsterInstance, day: str) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization(PRICES, partition=day))


def content(instance: dg.DagsterInstance, run_id: str) -> dict[str, Any]:
    """What the UI and sensors ask for, without times and ids of events."""
    newest = instance.get_latest_materialization_event(PRICES)
    assert newest is not None
    assert newest.asset_materialization is not None
    records = instance.fetch_materializations(PRICES, limit=100, ascending=True).records
    checks = instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(PRICES, "whole"), limit=100
    )
    return {
        "log": [
            (e.dagster_event.event_type_value, e.dagster_event.partition, e.step_key)
            for e in instance.all_logs(run_id)
            if e.dagster_event and e.dagster_event.event_type_value not in ("ENGINE_EVENT", "LOGS_CAPTURED")
        ],
        "newest": (newest.asset_materialization.partition, newest.run_id == run_id),
        "materialized": [(r.partition_key, list(r.asset_materialization.metadata)) for r in records],
        "checks": sorted((str(c.partition), c.status.value) for c in checks),
    }


def test_private_imports__of_dagster__are_in_two_modules():
    packages = ("domain", "resources", "services", "assets", "sensors", "orchestration")
    private = re.compile(r"^\s*(from|import) dagster\._", re.MULTILINE)
    found = [
        str(module.relative_to(PROJECT_ROOT))
        for package in packages
        for module in (PROJECT_ROOT / package).rglob("*.py")
        if private.search(module.read_text(encoding="utf-8"))
    ]
    assert sorted(found) == ["assets/policies/dagster_private.py", "orchestration/event_log.py"]


def test_run__many_partitions__logs_what_the_shipped_storage_logs_and_reads(
    tmp_path: Path, instance: dg.DagsterInstance
):
    """So a home keeps its history when it changes between the two."""
    run_id = run_all(instance)
    ours = content(instance, run_id)
    assert len(ours["materialized"]) == 20
    with opened(tmp_path / "shipped", shipped=True) as shipped:
        assert content(shipped, run_all(shipped)) == ours
    with opened(tmp_path / "home", shipped=True) as shipped:
        assert content(shipped, run_id) == ours
        second = run_all(shipped)
        theirs = content(shipped, second)
    assert content(instance, second) == theirs


def test_transaction__inside_another__is_committed_at_the_end_of_the_outer(
    tmp_path: Path, instance: dg.DagsterInstance
):
    def report_and_raise(shipped: dg.DagsterInstance) -> None:
        with written_together(instance):
            report(instance, "2026-11-01")
            with written_together(instance):
                report(instance, "2026-11-02")
            assert shipped.get_materialized_partitions(PRICES) == set()
            raise RuntimeError("later")

    with opened(tmp_path / "home", shipped=True) as shipped:
        with pytest.raises(RuntimeError, match="later"):
            report_and_raise(shipped)
        assert shipped.get_materialized_partitions(PRICES) == {"2026-11-01", "2026-11-02"}


def test_transaction__several_threads__lose_no_event(instance: dg.DagsterInstance):
    threads = [threading.Thread(target=write_ten, args=(instance, name)) for name in "st"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = instance.get_materialized_partitions(PRICES)
    assert found == {f"{name}-{n}-{part}" for name in "st" for n in range(10) for part in "ab"}


def write_ten(instance: dg.DagsterInstance, name: str) -> None:
    for n in range(10):
        with written_together(instance):
            report(instance, f"{name}-{n}-a")
            report(instance, f"{name}-{n}-b")


def test_delete_run__another_process_knows_the_run__deletes_its_database_only(
    tmp_path: Path, instance: dg.DagsterInstance
):
    deleted, kept = run_all(instance), run_all(instance)
    with opened(tmp_path / "home") as another:
        assert another.all_logs(deleted)
        instance.delete_run(deleted)
        left = {path.stem for path in (tmp_path / "home" / "history" / "runs").glob("*.db*")}
        assert deleted not in left
        assert kept in left
        assert instance.get_materialized_partitions(PRICES) == set(DAYS.get_partition_keys())
        assert another.all_logs(deleted) == []
        another.report_engine_event("late", run_id=deleted, job_name="a job")
        assert [entry.message for entry in another.all_logs(deleted)] == ["late"]

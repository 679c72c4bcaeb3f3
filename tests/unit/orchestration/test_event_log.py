"""Our event log on the databases of Dagster's: same files, same answers, many events in one transaction.

These tests fail loudly when an upgrade moves the private parts that `orchestration/event_log.py` uses.
"""

import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.event_log import SqliteEventLogStorage

from assets.policies.events import written_together
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


def test_private_imports__of_dagster__are_in_one_module():
    packages = ("domain", "resources", "services", "assets", "sensors", "orchestration")
    private = re.compile(r"^\s*(from|import) dagster\._", re.MULTILINE)
    found = [
        str(module.relative_to(PROJECT_ROOT))
        for package in packages
        for module in (PROJECT_ROOT / package).rglob("*.py")
        if private.search(module.read_text(encoding="utf-8"))
    ]
    assert found == ["orchestration/event_log.py"]


def test_run__many_partitions__logs_exactly_what_the_shipped_storage_logs(
    tmp_path: Path, instance: dg.DagsterInstance
):
    with opened(tmp_path / "shipped", shipped=True) as shipped:
        expected = content(shipped, run_all(shipped))
    assert content(instance, run_all(instance)) == expected
    assert len(expected["materialized"]) == 20


def test_open__written_by_the_other_storage__reads_its_history(tmp_path: Path, instance: dg.DagsterInstance):
    """So a home of an earlier version keeps its history, and going back to the shipped storage does too."""
    run_id = run_all(instance)
    ours = content(instance, run_id)
    with opened(tmp_path / "home", shipped=True) as shipped:
        assert content(shipped, run_id) == ours
        second = run_all(shipped)
        theirs = content(shipped, second)
    with opened(tmp_path / "home") as again:
        assert content(again, second) == theirs


def test_transaction__inside_another__is_committed_at_the_end_of_the_outer(
    tmp_path: Path, instance: dg.DagsterInstance
):
    with opened(tmp_path / "home", shipped=True) as other:
        with written_together(instance):
            report(instance, "2026-11-01")
            with written_together(instance):
                report(instance, "2026-11-02")
            assert other.get_materialized_partitions(PRICES) == set()
        assert other.get_materialized_partitions(PRICES) == {"2026-11-01", "2026-11-02"}


def test_transaction__body_raises__commits_its_events(instance: dg.DagsterInstance):
    def fall_over() -> None:
        with written_together(instance):
            report(instance, "2026-11-01")
            raise RuntimeError("later")

    with pytest.raises(RuntimeError, match="later"):
        fall_over()
    report(instance, "2026-11-02")
    assert instance.get_materialized_partitions(PRICES) == {"2026-11-01", "2026-11-02"}


def test_transaction__disk_refused_once__next_events_are_stored(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise OSError("no space left")

    def write_in_vain() -> None:
        monkeypatch.setattr(SqliteEventLogStorage, "_store_asset_event", refuse)
        with written_together(instance):
            report(instance, "2026-11-01")

    with pytest.raises(OSError, match="no space"):
        write_in_vain()
    monkeypatch.undo()
    with written_together(instance):
        report(instance, "2026-11-02")
    assert "2026-11-02" in instance.get_materialized_partitions(PRICES)


def test_transaction__several_threads_and_processes__loses_no_event(
    tmp_path: Path, instance: dg.DagsterInstance
):
    code = (
        "import sys, dagster as dg\n"
        "key = dg.AssetKey(['market', 'prices'])\n"
        "with dg.DagsterInstance.from_config(sys.argv[1]) as instance:\n"
        "    for n in range(10):\n"
        "        with instance.event_log_storage.one_transaction():\n"
        "            for part in 'ab':\n"
        "                event = dg.AssetMaterialization(key, partition=f'{sys.argv[2]}-{n}-{part}')\n"
        "                instance.report_runless_asset_event(event)\n"
    )
    others = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "home"), name], stderr=subprocess.PIPE)
        for name in ("p", "q")
    ]
    threads = [threading.Thread(target=write_ten, args=(instance, name)) for name in ("s", "t")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for other in others:
        _, stderr = other.communicate()
        assert other.returncode == 0, stderr.decode()
    found = instance.get_materialized_partitions(PRICES)
    assert found == {f"{name}-{n}-{part}" for name in "pqst" for n in range(10) for part in "ab"}


def write_ten(instance: dg.DagsterInstance, name: str) -> None:
    for n in range(10):
        with written_together(instance):
            report(instance, f"{name}-{n}-a")
            report(instance, f"{name}-{n}-b")


def test_delete_run__finished_run__deletes_its_database(tmp_path: Path, instance: dg.DagsterInstance):
    deleted, kept = run_all(instance), run_all(instance)
    instance.delete_run(deleted)
    left = {path.stem for path in (tmp_path / "home" / "history" / "runs").glob("*.db*")}
    assert deleted not in left
    assert kept in left
    assert instance.get_materialized_partitions(PRICES) == set(DAYS.get_partition_keys())


def test_delete_run__another_process_knows_the_run__reads_and_writes_an_empty_log(
    tmp_path: Path, instance: dg.DagsterInstance
):
    run_id = run_all(instance)
    with opened(tmp_path / "home") as another:
        assert another.all_logs(run_id)
        instance.delete_run(run_id)
        assert another.all_logs(run_id) == []
        another.report_engine_event("late", run_id=run_id, job_name="a job")
        assert [entry.message for entry in another.all_logs(run_id)] == ["late"]

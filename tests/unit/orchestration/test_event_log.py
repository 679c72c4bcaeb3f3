"""Dagster's event log as we run it: the same events and answers as the one shipped, written together."""

import sqlite3
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest
from dagster._core.storage.event_log import SqliteEventLogStorage

from assets.policies.events import written_together
from orchestration import event_log
from tests.dagster_home import opened

DAYS = dg.StaticPartitionsDefinition([f"2026-11-{day:02}" for day in range(1, 21)])
PRICES = dg.AssetKey(["market", "prices"])


def fill(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    with written_together(context.instance):
        for day in context.partition_keys:
            context.log_event(dg.AssetMaterialization(PRICES, partition=day, metadata={"rows": 5}))
            context.add_asset_metadata({"rows": 5}, asset_key=PRICES, partition_key=day)
            context.log_event(
                dg.AssetCheckEvaluation(
                    asset_key=PRICES, check_name="whole", passed=day != "2026-11-03", partition=day
                )
            )
    return dg.MaterializeResult(check_results=[dg.AssetCheckResult(check_name="whole", passed=False)])


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of single-run backfills being beta
    prices = dg.asset(
        key=PRICES,
        partitions_def=DAYS,
        backfill_policy=dg.BackfillPolicy.single_run(),
        check_specs=[dg.AssetCheckSpec("whole", asset=PRICES)],
    )(fill)


@pytest.fixture(autouse=True)
def batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_EVENT_BATCH_SIZE", "7")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with opened(tmp_path / "home") as ours:
        assert isinstance(ours.event_log_storage, event_log.EmbeddedEventLog)
        yield ours


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


def told(instance: dg.DagsterInstance, run_id: str) -> dict[str, Any]:
    """What the UI and sensors ask for, without times and ids of events."""
    log = [
        (e.dagster_event.event_type_value, e.dagster_event.partition, e.step_key)
        for e in instance.all_logs(run_id)
        if e.dagster_event and e.dagster_event.event_type_value not in ("ENGINE_EVENT", "LOGS_CAPTURED")
    ]
    newest = instance.get_latest_materialization_event(PRICES)
    assert newest is not None
    assert newest.asset_materialization is not None
    records = instance.fetch_materializations(PRICES, limit=100, ascending=True).records
    checks = instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(PRICES, "whole"), limit=100
    )
    return {
        "log": log,
        "newest": (newest.asset_materialization.partition, newest.run_id == run_id),
        "materialized": [(r.partition_key, list(r.asset_materialization.metadata)) for r in records],
        "partitions": sorted(instance.get_materialized_partitions(PRICES)),
        "checks": sorted((str(c.partition), c.status.value, *evaluated(c)) for c in checks),
        "key": instance.has_asset_key(PRICES),
    }


def evaluated(check: Any) -> tuple[str, str, bool]:
    """What a check's row says of the event behind it."""
    step = check.event.dagster_event
    return step.event_type_value, step.step_key, check.run_id == check.event.run_id


def test_an_evaluation_nobody_planned_is_told_like_the_shipped_one(
    tmp_path: Path, instance: dg.DagsterInstance
):
    def evaluate(of: dg.DagsterInstance) -> list[Any]:
        with written_together(of):
            for day in ("2026-11-01", None, None):
                of.report_runless_asset_event(
                    dg.AssetCheckEvaluation(
                        asset_key=PRICES, check_name="whole", passed=day is None, partition=day
                    )
                )
        history = of.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(PRICES, "whole"), limit=9
        )
        return [(c.partition, c.status.value, c.event.dagster_event.event_type_value) for c in history]

    with opened(tmp_path / "shipped", shipped=True) as shipped:
        expected = evaluate(shipped)
    assert evaluate(instance) == expected
    assert len(expected) == 3


def test_it_tells_exactly_what_the_shipped_one_tells(tmp_path: Path, instance: dg.DagsterInstance):
    with opened(tmp_path / "shipped", shipped=True) as shipped:
        expected = told(shipped, run_all(shipped))
    assert told(instance, run_all(instance)) == expected
    assert len(expected["partitions"]) == len(expected["materialized"]) / 2 == 20


def test_either_reads_what_the_other_wrote(tmp_path: Path, instance: dg.DagsterInstance):
    run_id = run_all(instance)
    ours = told(instance, run_id)
    with opened(tmp_path / "home", shipped=True) as shipped:
        assert told(shipped, run_id) == ours
        second = run_all(shipped)
        theirs = told(shipped, second)
    with opened(tmp_path / "home") as again:
        assert told(again, second) == theirs


def stands(folder: Path, run_id: str) -> tuple[str, list[tuple[str, ...]], list[tuple[str, ...]]]:
    """How the database of a run is made."""
    with closing(sqlite3.connect(folder / "history" / "runs" / f"{run_id}.db")) as run:
        [(mode,)] = run.execute("PRAGMA journal_mode")
        made = run.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
        return mode, made, run.execute("SELECT * FROM alembic_version").fetchall()


def test_the_database_of_a_run_is_made_as_dagster_makes_it(tmp_path: Path, instance: dg.DagsterInstance):
    with opened(tmp_path / "shipped", shipped=True) as shipped:
        expected = stands(tmp_path / "shipped", run_all(shipped))
    assert stands(tmp_path / "home", run_all(instance)) == expected
    assert expected[0] == "wal"
    assert len(expected[1]) > 10


@pytest.mark.parametrize("left", ["", "CREATE TABLE event_logs (id INTEGER PRIMARY KEY)"])
def test_a_database_that_was_left_half_made_is_finished(
    tmp_path: Path, instance: dg.DagsterInstance, left: str
):
    run_id = str(uuid4())
    with closing(sqlite3.connect(tmp_path / "home" / "history" / "runs" / f"{run_id}.db")) as run:
        run.executescript(left)
    with instance.event_log_storage.run_connection(run_id):
        pass
    _, made, [revision] = stands(tmp_path / "home", run_id)
    assert {"event_logs", "asset_keys", "alembic_version"} <= {name for _, name, _ in made}
    assert revision


def report(instance: dg.DagsterInstance, day: str) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization(PRICES, partition=day))


def test_events_written_together_are_there_at_the_end_and_not_before(
    tmp_path: Path, instance: dg.DagsterInstance
):
    with opened(tmp_path / "home", shipped=True) as other:
        with written_together(instance):
            report(instance, "2026-11-01")
            with written_together(instance):
                report(instance, "2026-11-02")
            assert other.get_materialized_partitions(PRICES) == set()
        assert other.get_materialized_partitions(PRICES) == {"2026-11-01", "2026-11-02"}


def test_a_body_that_raises_loses_no_event(instance: dg.DagsterInstance):
    def fall_over() -> None:
        with written_together(instance):
            report(instance, "2026-11-01")
            raise RuntimeError("later")

    with pytest.raises(RuntimeError, match="later"):
        fall_over()
    assert instance.get_materialized_partitions(PRICES) == {"2026-11-01"}
    report(instance, "2026-11-02")
    assert len(instance.get_materialized_partitions(PRICES)) == 2


def test_a_disk_that_refuses_once_does_not_spoil_what_follows(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise OSError("no space left")

    def write_in_vain() -> None:
        with written_together(instance):
            report(instance, "2026-11-01")
            monkeypatch.setattr(SqliteEventLogStorage, "_store_asset_event", refuse)

    with pytest.raises(OSError, match="no space"):
        write_in_vain()
    monkeypatch.undo()
    report(instance, "2026-11-02")
    with written_together(instance):
        report(instance, "2026-11-03")
    assert instance.get_materialized_partitions(PRICES) == {"2026-11-02", "2026-11-03"}


def test_threads_and_processes_write_at_once_and_lose_nothing(tmp_path: Path, instance: dg.DagsterInstance):
    code = (
        "import sys, dagster as dg\n"
        "key = dg.AssetKey(['market', 'prices'])\n"
        "with dg.DagsterInstance.from_config(sys.argv[1]) as instance:\n"
        "    for n in range(40):\n"
        "        with instance.event_log_storage.one_transaction():\n"
        "            for part in 'ab':\n"
        "                event = dg.AssetMaterialization(key, partition=f'{sys.argv[2]}-{n}-{part}')\n"
        "                instance.report_runless_asset_event(event)\n"
    )
    others = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "home"), name], stderr=subprocess.PIPE)
        for name in ("p", "q")
    ]
    threads = [threading.Thread(target=write_forty, args=(instance, name)) for name in ("s", "t")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for other in others:
        _, complaint = other.communicate()
        assert other.returncode == 0, complaint.decode()
    found = instance.get_materialized_partitions(PRICES)
    assert found == {f"{name}-{n}-{part}" for name in "pqst" for n in range(40) for part in "ab"}
    assert len(instance.fetch_materializations(PRICES, limit=1000).records) == 320


def write_forty(instance: dg.DagsterInstance, name: str) -> None:
    for n in range(40):
        with written_together(instance):
            report(instance, f"{name}-{n}-a")
            report(instance, f"{name}-{n}-b")


def test_a_run_can_be_watched_while_it_goes_on(instance: dg.DagsterInstance):
    """The UI does: it is told by the run's file, which changes when a connection is closed."""
    heard = threading.Event()

    def hear(entry: Any, _: str) -> None:
        if entry.dagster_event and entry.dagster_event.event_type_value == "ASSET_MATERIALIZATION":
            heard.set()

    job = dg.Definitions([prices]).resolve_implicit_global_asset_job_def()
    keys = DAYS.get_partition_keys()
    tags = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}
    run_id = str(uuid4())
    instance.watch_event_logs(run_id, None, hear)
    job.execute_in_process(instance=instance, tags=tags, run_id=run_id)
    assert heard.wait(20)


def test_engines_of_old_runs_are_let_go(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(event_log, "KEPT_ENGINES", 3)
    for _ in range(5):
        run_all(instance)
    storage = instance.event_log_storage
    assert isinstance(storage, event_log.EmbeddedEventLog)
    assert len(storage._engines) == 3


def test_events_that_are_deleted_take_no_room(tmp_path: Path, instance: dg.DagsterInstance):
    deleted, kept = run_all(instance), run_all(instance)
    instance.delete_run(deleted)
    left = {path.stem for path in (tmp_path / "home" / "history" / "runs").glob("*.db*")}
    assert deleted not in left
    assert kept in left
    assert instance.all_logs(kept)
    assert instance.get_materialized_partitions(PRICES) == set(DAYS.get_partition_keys())


def test_a_run_deleted_by_another_process_has_no_events_and_may_get_new_ones(
    tmp_path: Path, instance: dg.DagsterInstance
):
    run_id = run_all(instance)
    with opened(tmp_path / "home") as another:
        assert another.all_logs(run_id)
        instance.delete_run(run_id)
        assert another.all_logs(run_id) == []
        another.report_engine_event("late", run_id=run_id, job_name="a job")
        assert [entry.message for entry in another.all_logs(run_id)] == ["late"]
    assert len(instance.all_logs(run_id)) == 1

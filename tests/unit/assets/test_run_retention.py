"""Old runs go, except those that show what exists. A real instance, small assets."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from assets.run_retention import forget_runs
from tests.dagster_home import opened

DAYS = dg.StaticPartitionsDefinition(["monday", "tuesday"])
LATER = timedelta(minutes=1)


@dg.asset(partitions_def=DAYS)
def by_day() -> dg.MaterializeResult:
    return dg.MaterializeResult()


@dg.asset
def whole() -> dg.MaterializeResult:
    return dg.MaterializeResult()


@dg.asset
def broken() -> dg.MaterializeResult:
    raise dg.Failure("as intended", allow_retries=False)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as opened:
        yield opened


def run(instance: dg.DagsterInstance, asset: dg.AssetsDefinition, day: str | None = None) -> str:
    return dg.materialize([asset], instance=instance, partition_key=day, raise_on_error=False).run_id


def test_retention__several_runs_of_a_partition__keeps_the_newest(instance: dg.DagsterInstance) -> None:
    old = run(instance, by_day, "monday")
    kept = {run(instance, by_day, "monday"), run(instance, by_day, "tuesday")}
    assert forget_runs(instance, datetime.now(UTC) + LATER) == (1, 2)
    assert {r.run_id for r in instance.get_runs()} == kept
    assert not instance.get_run_by_id(old)
    assert instance.get_materialized_partitions(by_day.key) == {"monday", "tuesday"}


def test_retention__failed_and_superseded_runs__deletes_them(instance: dg.DagsterInstance) -> None:
    run(instance, broken)
    run(instance, whole)
    newest = run(instance, whole)
    assert forget_runs(instance, datetime.now(UTC) + LATER) == (2, 1)
    assert [r.run_id for r in instance.get_runs()] == [newest]


def test_retention__younger_than_the_horizon__stays(instance: dg.DagsterInstance) -> None:
    run(instance, broken)
    assert forget_runs(instance, datetime.now(UTC) - timedelta(days=30)) == (0, 0)
    assert len(instance.get_runs()) == 1


def test_retention__kept_runs_first__deletes_the_others(instance: dg.DagsterInstance) -> None:
    kept = {run(instance, by_day, "monday"), run(instance, by_day, "tuesday"), run(instance, whole)}
    run(instance, broken)
    assert forget_runs(instance, datetime.now(UTC) + LATER, at_once=1) == (1, 3)
    assert {r.run_id for r in instance.get_runs()} == kept


def files_of(run_id: str, home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file() and run_id in str(path)]


def test_retention__deleted_run__deletes_its_files(tmp_path: Path) -> None:
    with opened(tmp_path) as instance:
        *old, newest = [run(instance, whole) for _ in range(5)]
        before = {run_id: files_of(run_id, tmp_path) for run_id in (*old, newest)}
        assert all(any(path.suffix == ".db" for path in files) for files in before.values())
        assert all(any(path.suffix == ".err" for path in files) for files in before.values())
        assert forget_runs(instance, datetime.now(UTC) + LATER) == (4, 1)
        assert {run_id: files_of(run_id, tmp_path) for run_id in old} == {run_id: [] for run_id in old}
        assert files_of(newest, tmp_path) == before[newest]
        assert instance.all_logs(newest)
